# SPDX-License-Identifier: GPL-2.0-only
"""Destage in flight on this machine's kernel, with the real programs and a stand-in for bcache.

Direct writes to a loop disk count as destage; a frozen file system keeps them in flight.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.bpf_host.live import (
    HeldDisk,
    LiveProbe,
    LoopDisk,
    dev_t,
    kernel_address,
    probe_with,
    skip_unless_possible,
    unavailable,
)
from tests.probe_records import Record, of_type

WRITES_END = "blkdev_bio_end_io_async"
PERIOD_NS = 20_000_000


def _why_not() -> str | None:
    missing = [name for name in ("cc", "mkfs.ext4", "fsfreeze") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    reason = unavailable()
    if reason is None and kernel_address(WRITES_END) == 0:
        return f"this kernel has no function {WRITES_END}"
    return reason


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible(_why_not())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe with stand_in/bcache.c in place of what needs bcache."""
    out = tmp_path_factory.mktemp("program") / "probe"
    return probe_with("bcache.c", {"bcache_programs", "endio"}, out)


class Destage:
    """A volume of three loop disks whose backing device can hold its writes."""

    def __init__(self, probe: LiveProbe, disk: HeldDisk, others: tuple[str, str], endio: Path):
        self.probe = probe
        self.disk = disk
        self._others = others
        self._endio = endio

    def track(self) -> None:
        volume, cache = (dev_t(other) for other in self._others)
        devices = f"volume={volume} cache={cache} backing={dev_t(self.disk.path)}"
        self.probe.send(f"track v kind=bcache {devices}")
        self.probe.wait_for("track", vol="v")

    def pace(self, period_ns: int) -> None:
        self.probe.send(f"pace v {period_ns}")

    def see(self, *, on: bool) -> None:
        """Make the programs count writes as destage, or not."""
        self._endio.write_text(f"{kernel_address(WRITES_END):x}" if on else "1")
        name = f"again{time.monotonic_ns()}"
        self.probe.send(f"track {name} kind=disk volume={dev_t('/dev/loop0')}")
        self.probe.wait_for("track", vol=name)
        self.probe.send(f"untrack {name}")

    def writes(self, count: int) -> AbstractContextManager[None]:
        """Keep this many writes in flight until the end of the context."""
        return self.disk.writing(self.probe, count, "randwrite")

    def samples(self) -> list[Record]:
        """Return the samples of the queue so far."""
        return of_type(self.probe.records, "queue", vol="v")

    def in_flight(self) -> int:
        """Return the writes in flight of a sample taken after this call."""
        seen = len(self.samples())
        self.probe.wait_until(lambda: len(self.samples()) >= seen + 2, "queue")
        return int(self.samples()[-1]["inflight"])


@pytest.fixture
def destage(program: Path, tmp_path: Path) -> Iterator[Destage]:
    endio = tmp_path / "endio"
    endio.write_text(f"{kernel_address(WRITES_END):x}")
    env = {"EBBGATE_TEST_ENDIO": str(endio)}
    with (
        LoopDisk(tmp_path / "volume", 1 << 20) as volume,
        LoopDisk(tmp_path / "cache", 1 << 20) as cache,
        HeldDisk(tmp_path).made() as disk,
        LiveProbe("--tick-ms", "100", program=program, env=env) as probe,
    ):
        yield Destage(probe, disk, (volume.path, cache.path), endio)


def test_writes_from_before_tracking_do_not_count_as_in_flight(destage: Destage) -> None:
    with destage.writes(64):
        destage.track()
        destage.pace(PERIOD_NS)
        assert destage.in_flight() == 0
    assert destage.in_flight() == 0
    with destage.writes(10):
        assert destage.in_flight() == 10
    # The empty queue is reported at once, although the next period is far away.
    destage.pace(20_000_000_000)
    with destage.writes(3):
        began_ns = time.monotonic_ns()
        seen = len(destage.samples())
    destage.probe.wait_until(lambda: len(destage.samples()) > seen, "an empty queue")
    sample = destage.samples()[-1]
    assert sample["inflight"] == 0
    assert sample["came_ns"] - began_ns < 5_000_000_000
    assert destage.probe.next_tick("v")["destage"]["inflight_ios"] == 0


def test_a_write_whose_end_was_missed_is_dropped_when_nothing_moves(destage: Destage) -> None:
    destage.track()
    destage.pace(PERIOD_NS)
    with destage.writes(12):
        assert destage.in_flight() == 12
        destage.see(on=False)
    destage.see(on=True)
    assert destage.in_flight() == 12
    destage.probe.wait_until(lambda: destage.in_flight() == 0, "the missed writes to be forgotten")
    with destage.writes(5):
        assert destage.in_flight() == 5
    assert destage.in_flight() == 0
    tick = destage.probe.next_tick("v")["destage"]
    assert (tick["inflight_ios"], tick["inflight_bytes"]) == (0, 0)


@pytest.mark.parametrize("iostats", ["1", "0"])
def test_long_delayed_writes_stay_counted(destage: Destage, iostats: str) -> None:
    Path(f"/sys/block/{Path(destage.disk.path).name}/queue/iostats").write_text(iostats)
    destage.track()
    destage.pace(PERIOD_NS)
    with destage.disk.writing(destage.probe, 7, "randwrite", destage.in_flight):
        time.sleep(2.5)
        assert destage.in_flight() == 7
        depth = destage.probe.next_tick("v")["dev"]["backing"].get("depth")
        assert depth == ({"read": 0, "write": 7} if iostats == "1" else None)
    assert destage.in_flight() == 0
