# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate-probe --maps`: maps and programs of another process, each checked before it is used."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from tests.bpf_host.live import PROBE, skip_unless_possible, unavailable

ARRAY, MMAPABLE = 2, 1024


@dataclass(frozen=True)
class Shape:
    type: int
    key: int
    value: int
    entries: int
    flags: int


class Options(ctypes.Structure):
    """The beginning of struct bpf_map_create_opts."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("btf", ctypes.c_uint32 * 5),
        ("map_flags", ctypes.c_uint32),
    )


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible(unavailable())


def run(*arguments: str, fds: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROBE, *arguments], capture_output=True, text=True, pass_fds=fds, check=False, timeout=30
    )


def shapes() -> dict[str, Shape]:
    lines = (line.split() for line in run("--print-maps").stdout.splitlines())
    return {name: Shape(*map(int, words)) for name, *words in lines}


def create(shape: Shape) -> int:
    library = ctypes.CDLL("libbpf.so.1", use_errno=True)
    options = Options(sz=ctypes.sizeof(Options), map_flags=shape.flags)
    fd: int = library.bpf_map_create(
        shape.type, b"test", shape.key, shape.value, shape.entries, ctypes.byref(options)
    )
    assert fd >= 0, os.strerror(ctypes.get_errno())
    return fd


def started_with(made: Mapping[str, Shape]) -> subprocess.CompletedProcess[str]:
    fds = {name: create(shape) for name, shape in made.items()}
    try:
        listed = ",".join(f"{name}={fd}" for name, fd in fds.items())
        return run("--maps", listed, "--programs", "", fds=tuple(fds.values()))
    finally:
        for fd in fds.values():
            os.close(fd)


def test_the_loader_prints_the_maps_that_it_takes() -> None:
    found = shapes()
    assert list(found) == ["counters", "shared", "streams", "heat", "edges"]
    cpus = len(os.sched_getaffinity(0))
    assert found["counters"].entries >= cpus
    done = started_with(found)
    assert done.returncode == 64
    assert "no program of a raw tracepoint for block_bio_queue" in done.stderr


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("type 1 instead of 2", {"type": 1, "flags": 0}),
        ("value size 8 instead of", {"value": 8}),
        ("max entries 3 instead of", {"entries": 3}),
        ("flags 0 instead of 1024", {"flags": 0}),
    ],
)
def test_a_map_of_another_shape_is_refused(what: str, change: dict[str, int]) -> None:
    made = shapes()
    done = started_with({**made, "counters": replace(made["counters"], **change)})
    assert done.returncode == 64
    assert f"--maps: counters has {what}" in done.stderr
    assert "of the same release" in done.stderr


def test_a_missing_map_is_named() -> None:
    made = shapes()
    del made["edges"]
    assert "--maps: edges is missing" in started_with(made).stderr


def test_a_descriptor_that_is_no_map_is_refused() -> None:
    done = run("--maps", "counters=0", "--programs", "")
    assert (done.returncode, "descriptor 0 of counters is not a map" in done.stderr) == (64, True)


def test_maps_and_programs_belong_together() -> None:
    done = run("--maps", "counters=5")
    assert (done.returncode, "belong together" in done.stderr) == (64, True)
