# SPDX-License-Identifier: GPL-2.0-only
"""The probe's pure C: each test program with sanitizers, and each header for both compilers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BPF = HERE.parents[1] / "bpf"


@pytest.mark.parametrize("name", sorted(path.name[:-7] for path in HERE.glob("*_test.c")))
def test_c(name: str) -> None:
    done = subprocess.run([HERE / "run", name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize(
    "header",
    ["attribution.h", "heat.h", "hist.h", "idle.h", "join.h", "reuse.h", "stream.h"],
)
def test_a_pure_header_builds_for_the_kernel_too(header: str, tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    target = ["-target", "bpf", "-mcpu=v3", "-O2", "-Wall", "-Werror", "-c", "-xc", "-"]
    done = subprocess.run(
        ["clang", *target, "-I", str(BPF), "-o", str(tmp_path / "out.o")],
        input=f'#include "{header}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
