# SPDX-License-Identifier: GPL-2.0-only
"""Compares what the probe counted during a run of fio with what fio reports.

I/O: through the stack's Session and the probe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from tests.bench.mrc import is_sampled
from tests.lab import attribution, fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmStack
from tests.lab.errors import LabError
from tests.lab.layout_stacks import MOUNT, mounted
from tests.lab.probe import GuestProbe, tracked_as
from tests.lab.session import Session
from tests.lab.stack import Stack
from tests.lab.wait import wait_until
from tests.probe_records import Difference, Record, of_type

_METADATA_READS_MAX = 8
_TRIES_MAX = 8
PATHS = {"read": ("hit", "miss", "bypass"), "write": ("writeback", "writethrough", "bypass")}


T = TypeVar("T")


def job(stack: Stack, rw: str, bs: str = "4k", **options: str | int) -> fio.Job:
    """A job on the stack's volume."""
    return fio.Job(stack.device, rw, bs, options=options)


Counted = tuple[Difference, fio.FioResult]
"""The growth of the probe's counters, and what fio reports."""


def gained(probe: GuestProbe, stack: Stack, *jobs: fio.Job, seed: int) -> Counted:
    """Run jobs, again if the kernel has skipped a run of the probe's programs meanwhile."""
    return exact(probe, stack, lambda: counted(probe, stack, *jobs, seed=seed))


def counted(probe: GuestProbe, stack: Stack, *jobs: fio.Job, seed: int) -> Counted:
    """Run jobs once, as a part of what `exact` measures."""
    before = probe.tick(tracked_as(stack))
    result = fio.run(stack.session, *jobs, seed=seed)
    return Difference(before, probe.tick(tracked_as(stack))), result


def exact(probe: GuestProbe, stack: Stack, measure: Callable[[], T]) -> T:
    """Measure until the kernel has skipped no run of the probe's programs meanwhile.

    It skips one in an interrupt that has interrupted a run of the same program; kernels from 7.0 on
    skip more. The end of a request whose arrival was skipped counts as lost, so after that the
    volume is tracked anew: what is lost after it was lost without the kernel.
    """
    for _ in range(_TRIES_MAX):
        before = probe.tick(tracked_as(stack))
        found = measure()
        if not Difference(before, probe.tick(tracked_as(stack)))("lost", "missed"):
            return found
        track_again(probe, stack)
    raise LabError(f"the kernel skipped runs in each of {_TRIES_MAX} measurements")


def assert_users_alone_are_sampled(probe: GuestProbe, stack: Stack) -> None:
    """Check that a range that is read, read again and written refers to each sampled block thrice.

    Requests that the cache splits, fills and destage are no references.
    """
    name, offset_mib, mib = tracked_as(stack), 900, 16
    options = {"offset": f"{offset_mib}m", "size": f"{mib}m"}
    before = len(references(probe, name))
    for rw in ("read", "read", "write"):
        fio.run(stack.session, job(stack, rw, "1m", **options), seed=1)
    chunks = range(offset_mib, offset_mib + mib)
    blocks = [chunk * 256 + place for chunk in chunks for place in range(256)]
    sampled = [2 * block for block in blocks if is_sampled(block, 256)]
    expected = [*sampled, *sampled, *(reference + 1 for reference in sampled)]
    assert references(probe, name)[before:] == expected


def references(probe: GuestProbe, name: str) -> list[int]:
    probe.tick(name)
    records = of_type(probe.records(), "reuse", vol=name)
    return [reference for record in records for reference in record["refs"]]


Misses = dict[int, tuple[int, int, int]]
"""By chunk: reads for which somebody waits, other reads, writes."""


def missed(probe: GuestProbe, stack: Stack, *jobs: fio.Job) -> Misses:
    """Run jobs one by one; return their misses. The volume is tracked anew before and after."""
    first = track_again(probe, stack)
    for number, each in enumerate(jobs):
        fio.run(stack.session, each, seed=number)
    end = track_again(probe, stack)
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


def assert_misses_are_attributed(
    probe: GuestProbe,
    stack: Stack,
    read_misses: Callable[[], int],
    *,
    writes_min: int,
    since_tracked: bool = False,
    cached_writes: Callable[[], int] = lambda: 0,
    takes_nothing_in: AbstractContextManager[None] | None = None,
) -> None:
    """Check by which cgroups and of which files the misses were, on a new file system.

    Reads are exactly those that `read_misses` counts meanwhile. A few of them are not of a file,
    but to find where it lies, and some of these are the kernel's. writes_min: how many of 20 writes
    go to the backing device. since_tracked: `read_misses` begins anew when the volume is tracked.
    cached_writes: how many have hit the cache, in which a new file must not be. takes_nothing_in:
    has the cache promote nothing while the files are made.
    """
    guest, name = stack.session, tracked_as(stack)
    files = f"{MOUNT}/a", f"{MOUNT}/b"
    with mounted(guest, "ext4", stack.device), attribution.cgroups(guest) as names:
        with takes_nothing_in or nullcontext():
            for file, blocks in zip(files, (67, 81), strict=True):
                _new_file(guest, file, blocks, cached_writes)
        begin = track_again(probe, stack, "attribution")
        # The kernel may read before a first look.
        before = 0 if since_tracked else read_misses()
        used = _use(guest, names, files, read_misses)
        whole = read_misses() - before
        end = track_again(probe, stack, "attribution")
        records = of_type(probe.records(), "attribution", vol=name)[begin:end]
        found = attribution.attributed(records)
        inodes = [attribution.inode_of(guest, each) for each in files]
        groups = [attribution.cgroup_id(guest, each) for each in (*names, "")]
    _assert_cgroups(found.cgroups, groups, used, writes_min)
    _assert_inodes(found.inodes, inodes, used, writes_min)
    # The kernel may read in the background between two uses.
    for owners in (found.cgroups, found.inodes):
        assert sum(reads for reads, _ in owners.values()) == whole >= sum(used), (used, found)


def _new_file(guest: Session, path: str, blocks: int, cached_writes: Callable[[], int]) -> None:
    """Write a file that is not in the cache: if its place is, elsewhere once more."""
    for number in range(_TRIES_MAX):
        before = cached_writes()
        attribution.new_file(guest, path, blocks)
        if cached_writes() - before <= blocks // 2:
            return
        guest.check(["mv", path, f"{path}.{number}"])
    raise LabError(f"{path}: each of {_TRIES_MAX} places was in the cache")


Used = tuple[int, int, int, int, int]
"""Missed reads of the first file by the first cgroup and by the second; of the second file; while
it was written; and past the page cache."""


def _use(
    guest: Session, names: tuple[str, str], files: tuple[str, str], read_misses: Callable[[], int]
) -> Used:
    (first, second), (a, b) = names, files

    def use(cgroup: str, how: str, path: str, blocks: range) -> int:
        before = read_misses()
        attribution.use(guest, cgroup, how, path, blocks)
        return read_misses() - before

    by_first = use(first, "read", a, range(60))
    by_second = use(second, "read", a, range(60, 67))
    below = use(f"{second}/below", "read", b, range(40))
    written = use(first, "write", b, range(20)) + use(first, "write past", b, range(20, 40))
    # Into memory of the program alone, and into memory that has an inode.
    past = use(second, "private", b, range(40, 70)) + use(second, "shared", b, range(70, 81))
    return by_first, by_second, below, written, past


def _assert_cgroups(
    found: attribution.Misses, groups: list[tuple[int, ...]], used: Used, writes_min: int
) -> None:
    first, second, root = groups
    by_first, by_second, below, written, past = used
    seen = (used, found)
    assert found.keys() <= {*groups}, seen
    # The kernel's own, for a file or in the background, are the root's.
    own = found.get(root, (0, 0))[0]
    assert own <= _METADATA_READS_MAX, seen
    for group, missed in ((first, by_first + written), (second, by_second + below + past)):
        assert missed - own <= found[group][0] <= missed, seen
    # Those through the page cache are charged to the cgroup that dirtied the file first.
    assert writes_min <= found[first][1] <= 20, seen
    assert found[second][1] == 0, seen


def _assert_inodes(
    found: attribution.Misses, inodes: list[tuple[int, ...]], used: Used, writes_min: int
) -> None:
    a, b = inodes
    by_first, by_second, below, _, past = used
    seen = (used, found)
    assert found.keys() == {a, b, (0, 0)}, seen
    for file, missed, asked in ((a, by_first + by_second, 67), (b, below, 40)):
        assert missed - _METADATA_READS_MAX <= found[file][0] <= min(missed, asked), seen
    assert found[a][1] == 0, seen
    assert writes_min <= found[b][1] <= 20, seen
    assert past <= found[0, 0][0] <= past + 4 * _METADATA_READS_MAX, seen


def track_again(probe: GuestProbe, stack: Stack, kind: str = "heat") -> int:
    """Have the probe report its misses; return how many records of them there are."""
    name = tracked_as(stack)
    seen = len(of_type(probe.records(), "track", vol=name))
    probe.send(f"untrack {name}")
    if isinstance(stack, BcacheStack):
        probe.track(stack)
    elif isinstance(stack, DmStack):
        probe.track_dm(stack)
    probe.wait(lambda records: len(of_type(records, "track", vol=name)) > seen, f"track {name}")
    return len(of_type(probe.records(), kind, vol=name))


def assert_earlier_requests_are_not_lost(probe: GuestProbe, stack: Stack) -> None:
    """Check that a request that was sent before the volume was tracked does not count as lost."""

    def since_tracked() -> Record:
        track_again(probe, stack)
        ticks = [probe.tick(tracked_as(stack)) for _ in range(5)]
        return ticks[-1]

    options: dict[str, str | int] = {"size": "256m", "ioengine": "libaio", "iodepth": 16}
    mixed = job(stack, "randrw", "4k", **options, time_based=1, runtime=600)
    load = fio.start(stack.session, mixed, seed=45)
    try:
        wait_until(lambda: since_tracked()["fg"]["write"]["ios"] > 0, 30, "fio to write")
        for _ in range(4):
            tick = exact(probe, stack, since_tracked)
            assert tick["fg"]["read"]["ios"] > 0 < tick["fg"]["write"]["ios"]
            assert_nothing_lost(stack.session, tick["lost"])
    finally:
        load.stop(30)


def assert_nothing_lost(guest: Session, lost: dict[str, int]) -> None:
    """Check that the probe lost nothing, but for what it makes good.

    What the kernel skipped (`missed`) is repaired, which `test_probe_preempted` proves; what is
    compared with exact counts is measured without (`exact`). On kernels from 7.0 on a stream or two
    were pushed out, which loses no bytes.
    """
    pushed_out = 0 if preempts_programs(guest) else lost["streams"]
    assert not any({**lost, "streams": pushed_out, "missed": 0}.values()), lost


def preempts_programs(guest: Session) -> bool:
    """Whether the kernel may preempt a program: one whose tracepoints run under SRCU (from 7.0)."""
    types = guest.run(["grep", "--text", "--quiet", "srcu_ctr", "/sys/kernel/btf/vmlinux"])
    return types.rc == 0


def assert_equal_to_fio(gain: Difference, result: fio.FioResult) -> None:
    """Check that requests and bytes equal fio's and that each has one path and a latency."""
    for way in ("read", "write"):
        for what in ("ios", "bytes"):
            counted = gain("fg", way, what)
            done = sum(getattr(getattr(each, way), what) for each in result.jobs)
            assert counted == done, (way, what, counted, done, gain("lost", "missed"))
        assert sum(gain.histogram("runs", way)) == gain("fg", way, "bytes")
        for what in ("ios", "bytes"):
            taken = [gain("path", way, path, what) for path in PATHS[way]]
            assert sum(taken) == gain("fg", way, what), (way, what, taken)
        for path in PATHS[way]:
            assert sum(gain.histogram("path", way, path, "lat")) == gain("path", way, path, "ios")
