# SPDX-License-Identifier: GPL-2.0-only
"""The source that bcc compiles: made from the libbpf programs, complete, without their reads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BPF = Path(__file__).resolve().parents[2] / "bpf"
SOURCES = ("block.bpf.c", "bcache.bpf.c", "sizes.bpf.h")


@pytest.fixture(scope="module")
def source() -> str:
    argv = [sys.executable, str(BPF / "bcc" / "flatten.py"), *SOURCES]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    return done.stdout


def test_each_program_that_the_loader_takes_is_in_the_source(source: str) -> None:
    table = re.search(r"tracepoints\[\] = \{(.*?)\}", (BPF / "inherited.c").read_text(), re.S)
    assert table is not None
    assert set(re.findall(r"^int on_(\w+)\(", source, re.M)) == set(
        re.findall(r'"(\w+)"', table[1])
    )


def test_no_program_follows_a_pointer_to_kernel_memory(source: str) -> None:
    assert re.findall(r"\b(?:bio|rq|part|disk)->\w+", source) == []
    assert "READ_KERNEL(READ_KERNEL(bio, bi_bdev), bd_dev)" in source


def test_every_file_is_included_once(source: str) -> None:
    assert re.findall(r'^#include "', source, re.M) == []
    guards = re.findall(r"^#ifndef (EBBGATE_\w+_H)$", source, re.M)
    assert sorted(guards) == sorted(set(guards))
