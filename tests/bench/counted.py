# SPDX-License-Identifier: GPL-2.0-only
"""Instructions per request, with the probe and without, on null block devices.

Instructions are counted in a guest whose clock is its instruction count (`-icount`): the same work
takes the same instructions, to the resolution of fio's millisecond. The volumes are real: bcache
and dm-cache over two null block devices that keep their data in memory. Each figure is of a fresh
volume, because writes and misses change the cache. Ticks, whose cost does not depend on requests,
come only once a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.probe import PROBE, GuestProbe
from tests.lab.session import Session

PLAIN = "nullb0"
"""The disk that completes each request at once and keeps nothing."""
_DISKS_MIB = {"hdd0": 2048, "ssd0": 4096}
_CONFIGFS = "/sys/kernel/config"
_WARM = {"size": "32m"}
# So wide that dm-cache hardly takes a block in.
_COLD = {"size": "1800m", "offset": "128m"}
_TOOK_MIN = {"hit": 1.0, "writeback": 1.0, "miss": 0.98}
"""The least share of requests that take the path: smq also takes blocks in by chance."""
_TICK_NS = 60_000_000_000
Options = dict[str, str | int]
Figure = Callable[[Session, str, str, int, Options], float]
"""Instructions of a request: of requests to a device, with options of fio."""
# No destage and no bypass during a figure.
_BCACHE = {
    "writeback_percent": 40,
    "writeback_running": 0,
    "sequential_cutoff": 0,
    "cache/congested_read_threshold_us": 0,
    "cache/congested_write_threshold_us": 0,
}
_DM_CACHE = {"migration_threshold": 0}


@dataclass(frozen=True, slots=True)
class RequestPath:
    """A path of a request. `way`: its name in a tick, `added_max`: the goal, in instructions."""

    volume: str
    rw: str
    way: str
    added_max: int

    @property
    def in_cache(self) -> bool:
        """Whether the data is in the cache already."""
        return self.way != "miss"


PATHS = {
    "bcache_hit": RequestPath("bcache", "read", "hit", 1000),
    "bcache_write": RequestPath("bcache", "write", "writeback", 1100),
    "bcache_miss": RequestPath("bcache", "read", "miss", 1850),
    "dm_cache_hit": RequestPath("dm-cache", "read", "hit", 1800),
    "lvm_cache_hit": RequestPath("lvm-cache", "read", "hit", 1800),
}
PLAIN_ADDED_MAX = 600


@dataclass(frozen=True, slots=True)
class Cost:
    """Instructions per request without the probe, and how many it adds."""

    without: float
    added: float


@contextmanager
def null_guest() -> Iterator[Session]:
    """A guest that counts instructions, with null block devices."""
    with Guest([], icount=True) as guest, null_disks(guest):
        yield guest


@contextmanager
def null_disks(guest: Session) -> Iterator[None]:
    """A plain null disk, and two that keep their data, named as the lab's hard disk and SSD."""
    guest.check("modprobe null_blk nr_devices=1 submit_queues=1 irqmode=0")
    guest.run(["mount", "-t", "configfs", "none", _CONFIGFS])
    folders = [f"{_CONFIGFS}/nullb/{name}" for name in _DISKS_MIB]
    try:
        for folder, (name, mib) in zip(folders, _DISKS_MIB.items(), strict=True):
            guest.check(["mkdir", folder])
            settings = {"size": mib, "memory_backed": 1, "irqmode": 0, "submit_queues": 1}
            for setting, value in {**settings, "power": 1}.items():
                guest.write(f"{folder}/{setting}", str(value))
            guest.name_device(name, _kernel_name(guest, folder))
        yield
    finally:
        guest.check(["rmdir", *folders])
        guest.check("modprobe -r null_blk")


def _kernel_name(guest: Session, folder: str) -> str:
    """Newer kernels name a disk after its folder."""
    name = folder.rpartition("/")[2]
    if guest.resolve(f"/sys/block/{name}"):
        return name
    return f"nullb{guest.read(f'{folder}/index')}"


def _done(guest: Session, device: str, rw: str, requests: int, options: Options) -> fio.JobResult:
    """Do random requests of 4 KiB."""
    counts: Options = {"number_ios": requests, "io_size": requests * 4096}
    job = fio.Job(device, rw, "4k", options={**counts, **options})
    done = fio.run(guest, job, seed=1, timeout_s=300).only
    assert done.ios == requests
    return done


def per_request(guest: Session, device: str, rw: str, requests: int, options: Options) -> float:
    """Instructions of the guest per random request of 4 KiB."""
    done = _done(guest, device, rw, requests, {"gtod_reduce": 1, **options})
    return done.runtime_ms * 1e6 / done.ios


def _latency(guest: Session, device: str, rw: str, requests: int, options: Options) -> float:
    """Instructions until a random read has ended, which fio tells to one."""
    return _done(guest, device, rw, requests, options).read.mean_ns


def plain(guest: Session, requests: int) -> float:
    """Instructions of a random read of the plain disk; the first run warms the kernel up."""
    options: Options = {"size": "200m", "norandommap": 1}
    device = f"/dev/{PLAIN}"
    return [per_request(guest, device, "randread", n, options) for n in (1000, requests)][-1]


def plain_cost(guest: Session, requests: int) -> Cost:
    """What the probe adds to a read of the plain disk, with all signals."""
    without = plain(guest, requests)
    number = guest.read(f"/sys/block/{PLAIN}/dev")
    with GuestProbe(guest) as probe:
        probe.send(f"tick {_TICK_NS}")
        probe.send(f"track d kind=disk volume={number} backing={number}")
        probe.wait_for("track", vol="d")
        return Cost(without, plain(guest, requests) - without)


def path_cost(guest: Session, path: RequestPath, requests: int, pairs: int = 1) -> Cost:
    """What the probe adds to a request on a path: the median of pairs.

    The first run has the disks take memory for what is written, so it does not count.
    """
    _arm(guest, path, requests, None)
    found = [
        (_arm(guest, path, requests, None), _arm(guest, path, requests, PROBE))
        for _ in range(pairs)
    ]
    added = median(probed - without for without, probed in found)
    return Cost(median(without for without, _ in found), added)


def latency_probed(guest: Session, path: RequestPath, requests: int, probe: Path) -> float:
    """Instructions until a read on a path has ended, with this probe."""
    return _arm(guest, path, requests, probe, _latency)


def _arm(
    guest: Session,
    path: RequestPath,
    requests: int,
    program: Path | None,
    figure: Figure = per_request,
) -> float:
    """One figure, of a volume made for it."""
    with _stack(guest, path) as stack:
        _warm(guest, stack.device)
        if program is None:
            return _measure(guest, path, stack.device, requests, figure)
        with GuestProbe(guest, argv=(program,)) as probe:
            if isinstance(stack, BcacheStack):
                probe.track(stack, "v")
            else:
                probe.track_dm(stack, "v")
            return _measure_probed(guest, path, stack.device, requests, figure, probe)


def _stack(guest: Session, path: RequestPath) -> BcacheStack | DmCacheStack:
    if path.volume == "bcache":
        return BcacheStack(guest, scheduler="none", settings=_BCACHE)
    lvm = path.volume == "lvm-cache"
    return DmCacheStack(guest, scheduler="none", settings=_DM_CACHE, lvm=lvm)


def _warm(guest: Session, device: str) -> None:
    """Whole blocks, which both caches take in at once; then random writes and reads of them."""
    fio.run(guest, fio.Job(device, "write", "64k", options=_WARM), seed=1)
    for rw in ("randwrite", "randread"):
        per_request(guest, device, rw, 1000, dict(_WARM))


def _measure(
    guest: Session, path: RequestPath, device: str, requests: int, figure: Figure
) -> float:
    options: Options = {**_WARM, "norandommap": 1} if path.in_cache else dict(_COLD)
    return figure(guest, device, f"rand{path.rw}", requests, options)


def _measure_probed(
    guest: Session,
    path: RequestPath,
    device: str,
    requests: int,
    figure: Figure,
    probe: GuestProbe,
) -> float:
    """The same with the probe, which must have seen the requests on the path."""
    probe.send(f"tick {_TICK_NS}")
    found = _measure(guest, path, device, requests, figure)
    probe.send("tick 100000000")
    seen = probe.tick("v")["path"][path.rw][path.way]["ios"]
    assert _TOOK_MIN[path.way] <= seen / requests <= 1, f"{seen} of {requests} took the path {path}"
    return found
