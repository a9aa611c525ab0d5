# SPDX-License-Identifier: GPL-2.0-only
"""Compares what the probe counted during a run of fio with what fio reports.

I/O: through the stack's Session and the probe.
"""

from __future__ import annotations

from tests.bench.mrc import is_sampled
from tests.lab import fio
from tests.lab.probe import GuestProbe, tracked_as
from tests.lab.session import Session
from tests.lab.stack import Stack
from tests.probe_records import Difference, of_type

PATHS = {"read": ("hit", "miss", "bypass"), "write": ("writeback", "writethrough", "bypass")}


def job(stack: Stack, rw: str, bs: str = "4k", **options: str | int) -> fio.Job:
    """A job on the stack's volume."""
    return fio.Job(stack.device, rw, bs, options=options)


def gained(
    probe: GuestProbe, stack: Stack, *jobs: fio.Job, seed: int
) -> tuple[Difference, fio.FioResult]:
    """Run jobs; return the growth of the probe's counters."""
    before = probe.tick(tracked_as(stack))
    result = fio.run(stack.session, *jobs, seed=seed)
    return Difference(before, probe.tick(tracked_as(stack))), result


def assert_users_alone_are_sampled(probe: GuestProbe, stack: Stack) -> None:
    """Check that a range that is read, read again and written refers to each sampled block thrice.

    Requests that the cache splits, fills and destage are no references.
    """
    name, offset_mib, mib = tracked_as(stack), 900, 16
    options = {"offset": f"{offset_mib}m", "size": f"{mib}m"}
    before = len(_references(probe, name))
    for rw in ("read", "read", "write"):
        fio.run(stack.session, job(stack, rw, "1m", **options), seed=1)
    chunks = range(offset_mib, offset_mib + mib)
    blocks = [chunk * 256 + place for chunk in chunks for place in range(256)]
    sampled = [2 * block for block in blocks if is_sampled(block, 256)]
    expected = [*sampled, *sampled, *(reference + 1 for reference in sampled)]
    assert _references(probe, name)[before:] == expected


def _references(probe: GuestProbe, name: str) -> list[int]:
    probe.tick(name)
    records = of_type(probe.records(), "reuse", vol=name)
    return [reference for record in records for reference in record["refs"]]


def assert_nothing_lost(guest: Session, lost: dict[str, int]) -> None:
    """Check that the probe lost nothing.

    A kernel whose tracepoints run under SRCU (7.0 and later) may preempt a program; then it skips
    runs, which the probe counts in `missed` and makes good. On others nothing is excused.
    """
    missed = {} if _may_skip_runs(guest) else {"missed": lost["missed"]}
    assert not any({**lost, "missed": 0, **missed}.values()), lost


def _may_skip_runs(guest: Session) -> bool:
    types = guest.run(["grep", "--text", "--quiet", "srcu_ctr", "/sys/kernel/btf/vmlinux"])
    return types.rc == 0


def assert_equal_to_fio(gain: Difference, result: fio.FioResult) -> None:
    """Check that requests and bytes equal fio's and that each has one path and a latency."""
    for way in ("read", "write"):
        assert gain("fg", way, "ios") == sum(getattr(done, way).ios for done in result.jobs)
        assert gain("fg", way, "bytes") == sum(getattr(done, way).bytes for done in result.jobs)
        assert sum(gain.histogram("runs", way)) == gain("fg", way, "bytes")
        for what in ("ios", "bytes"):
            taken = [gain("path", way, path, what) for path in PATHS[way]]
            assert sum(taken) == gain("fg", way, what), (way, what, taken)
        for path in PATHS[way]:
            assert sum(gain.histogram("path", way, path, "lat")) == gain("path", way, path, "ios")
