# SPDX-License-Identifier: GPL-2.0-only
"""Compares what the probe counted during a run of fio with what fio reports.

I/O: through the stack's Session and the probe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.bench.mrc import is_sampled
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmStack
from tests.lab.probe import GuestProbe, tracked_as
from tests.lab.session import Session
from tests.lab.stack import Stack
from tests.probe_records import Difference, Record, of_type

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


Misses = dict[int, tuple[int, int, int]]
"""By chunk: reads for which somebody waits, other reads, writes."""


def missed(probe: GuestProbe, stack: Stack, *jobs: fio.Job) -> Misses:
    """Run jobs one by one; return their misses. The volume is tracked anew before and after."""
    first = _track_again(probe, stack)
    for number, each in enumerate(jobs):
        fio.run(stack.session, each, seed=number)
    end = _track_again(probe, stack)
    return misses_in(of_type(probe.records(), "heat", vol=tracked_as(stack))[first:end])


def misses_in(records: Iterable[Record]) -> Misses:
    """Add up the misses of records that have them all."""
    sums: Counter[tuple[int, int]] = Counter()
    for record in records:
        assert record["left_out"] == record["dropped"] == 0
        chunks = record["chunks"]
        for chunk, *counts in zip(*(chunks[start::4] for start in range(4)), strict=True):
            sums.update({(chunk, kind): count for kind, count in enumerate(counts)})
    places = sorted({chunk for chunk, _ in sums})
    return {chunk: (sums[chunk, 0], sums[chunk, 1], sums[chunk, 2]) for chunk in places}


def _track_again(probe: GuestProbe, stack: Stack) -> int:
    """Have the probe report its misses; return how many records of them there are."""
    name = tracked_as(stack)
    seen = len(of_type(probe.records(), "track", vol=name))
    probe.send(f"untrack {name}")
    if isinstance(stack, BcacheStack):
        probe.track(stack)
    elif isinstance(stack, DmStack):
        probe.track_dm(stack)
    probe.wait(lambda records: len(of_type(records, "track", vol=name)) > seen, f"track {name}")
    return len(of_type(probe.records(), "heat", vol=name))


def assert_nothing_lost(guest: Session, lost: dict[str, int]) -> None:
    """Check that the probe lost nothing.

    A kernel whose tracepoints run under SRCU (7.0 and later) may preempt a program; then it skips
    runs, which the probe counts in `missed` and makes good. On others nothing is excused.
    """
    missed = {} if may_skip_runs(guest) else {"missed": lost["missed"]}
    assert not any({**lost, "missed": 0, **missed}.values()), lost


def may_skip_runs(guest: Session) -> bool:
    """Whether the kernel may preempt a program, and then skips runs of it."""
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
