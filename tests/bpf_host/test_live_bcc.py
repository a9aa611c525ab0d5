# SPDX-License-Identifier: GPL-2.0-only
"""bcc compiles the programs with a stock kernel's headers, and this machine's kernel takes them.

Their counts make sense only on the kernel of those headers: see tests/lab/test_probe_bcc.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.bpf_host.live import PROBE, skip_unless_possible, unavailable
from tests.lab import kernel, kernel_headers
from tests.lab.errors import NoLab

BCC_PROBE = PROBE.with_name("ebbgate-probe-bcc")


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers of the lab's kernel in one folder; Debian has them in two."""
    skip_unless_possible(unavailable())
    if importlib.util.find_spec("bcc") is None:
        skip_unless_possible("python3-bpfcc is not installed")
    try:
        sources = kernel_headers.fetch(kernel.DEFAULT_RELEASE).sources
    except NoLab as reason:
        skip_unless_possible(str(reason))
    folder = tmp_path_factory.mktemp("headers")
    for part in sorted(sources.iterdir(), reverse=True):
        subprocess.run(["cp", "-rsf", f"{part}/.", folder], check=True)
    return folder


@pytest.mark.timeout(180)
def test_bcc_compiles_the_programs_and_the_kernel_takes_them(headers: Path) -> None:
    done = subprocess.run(
        [BCC_PROBE, "--check"],
        env={**os.environ, "BCC_KERNEL_SOURCE": str(headers)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["probe"] == "bcc"
    assert done.stderr == ""
