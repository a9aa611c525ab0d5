# SPDX-License-Identifier: GPL-2.0-only
"""What a person sets for a volume of a cache set, beside another volume that is tuned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.model.decision import GateKind
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode, Volume
from ebbgate.policy.defaults import Policy
from ebbgate.probes.topology import discover
from ebbgate.probes.volume_state import read_knobs
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import tick, volume_state
from tests.fake_sysfs import SET_UUID, WatchedSysfs, two_on_a_cache
from tests.volume_loop_fixture import RecordingSink
from tests.waiting import until

CONGESTED = "congested_read_threshold_us"
IDLE_MAX = "internal/idle_max_writeback_rate"


class TwoLoops:
    """The loops of bcache0 and bcache1, in enforce, with the daemon's journal."""

    def __init__(self, folder: Path) -> None:
        self.fake = two_on_a_cache(folder / "sys")
        self.sysfs = WatchedSysfs(folder / "sys")
        self.journal = JournalWriter(folder / "journal.db", LastWritten(folder / "last-written"))
        self.now_ms = 10_000
        self.ended: dict[str, str] = {}
        self.loops = [self.loop(each) for each in discover(self.fake.sysfs)]
        self.first, self.second = self.loops

    def loop(self, volume: Volume) -> VolumeLoop:
        writer = KnobWriter(self.sysfs, volume, self.journal, "this boot", now_ns=self.now_ns)
        loop = VolumeLoop(
            volume=volume,
            writer=writer,
            policy=Policy(),
            events=RecordingSink(),
            send=lambda _: None,
            mode=Mode.ENFORCE,
            now_ns=self.now_ns,
        )
        loop.overrides.on_end = self.end
        return loop

    def now_ns(self) -> int:
        return self.now_ms * NS_PER_MS

    def look(self, times: int = 8) -> None:
        """Both volumes are busy for two seconds."""
        for _ in range(times):
            self.now_ms += 250
            now_ns = self.now_ns()
            for loop in self.loops:
                loop.on_record(tick(vol=loop.volume.name, ns=now_ns, state="busy", last_ns=now_ns))
                knobs = dict(read_knobs(self.sysfs, loop.volume))
                seen = volume_state(at_ns=now_ns, knobs=knobs, dirty_bytes=500 * MIB)
                loop.on_tick(seen, knobs_settled=True)
                self.settle(loop)

    def settle(self, loop: VolumeLoop) -> None:
        until(lambda: loop.worker.idle)

    def override(self, loop: VolumeLoop, knob: str = "", value: str = "") -> None:
        """Put an override in force as the only one; without a knob none."""
        kept: tuple[ActiveOverride, ...] = ()
        if knob:
            name, number = loop.volume.name, self.now_ms
            wanted = Override(OverrideKind.SET, name, "jo", 1, None, knob, value, number)
            kept = (ActiveOverride(wanted, None),)
        loop.set_overrides(kept)
        self.settle(loop)
        self.look()

    def end(self, override: Override, why: str) -> None:
        """As the registry does."""
        self.ended[override.volume] = why
        loop = next(each for each in self.loops if each.volume.name == override.volume)
        loop.set_overrides(())

    def value(self, knob: str) -> str:
        return self.fake.read(f"/sys/fs/bcache/{SET_UUID}/{knob}")

    def manual(self) -> set[str]:
        return self.first.writer.manual | self.second.writer.manual

    def stop(self) -> None:
        for loop in self.loops:
            loop.release("ebbgated stops")
            loop.worker.stop(5)
        self.journal.stop()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoLoops]:
    made = TwoLoops(tmp_path)
    made.look()
    yield made
    made.stop()


def test_the_gate_of_a_volume_goes_on_beside_the_override_of_another(two: TwoLoops) -> None:
    assert two.value(IDLE_MAX) == "0"
    two.override(two.first, "idle_max_writeback_rate", "1")
    assert (two.value(IDLE_MAX), two.manual(), two.ended) == ("1", set(), {})
    gate = two.second.driver.applied.gate
    assert gate is not None and gate.kind is not GateKind.RELEASED
    two.override(two.first)
    assert (two.value(IDLE_MAX), two.manual()) == ("0", set())
    for loop in two.loops:
        assert "idle_max_writeback_rate" in loop.writer.owned
        loop.release("ebbgated stops")
        two.settle(loop)
    assert two.value(IDLE_MAX) == "1"


def test_a_newer_override_of_another_volume_ends_the_older_one(two: TwoLoops) -> None:
    two.override(two.first, CONGESTED, "5000")
    two.override(two.second, CONGESTED, "7000")
    assert two.ended == {"bcache0": "a newer one of bcache1 is in force"}
    del two.sysfs.log[:]
    two.look()
    written = [knob for knob, _ in two.sysfs.log if knob == CONGESTED]
    assert (two.value(CONGESTED), two.manual(), written) == ("7000", set(), [])
    two.override(two.second)
    assert two.value(CONGESTED) == "2000"
    assert two.first.overrides.active == two.second.overrides.active == ()


def test_the_same_override_of_both_volumes_stays_until_both_end(two: TwoLoops) -> None:
    two.override(two.first, CONGESTED, "5000")
    two.override(two.second, CONGESTED, "5000")
    two.override(two.second)
    assert (two.value(CONGESTED), two.manual(), two.ended) == ("5000", set(), {})
    two.override(two.first)
    assert two.value(CONGESTED) == "2000"


def test_what_somebody_else_writes_ends_the_override_and_stays(two: TwoLoops) -> None:
    two.override(two.first, CONGESTED, "5000")
    two.fake.write(f"/sys/fs/bcache/{SET_UUID}/{CONGESTED}", "777")
    two.look()
    assert two.ended == {"bcache0": f"somebody else has written {CONGESTED} since"}
    assert (two.value(CONGESTED), two.first.writer.manual) == ("777", {CONGESTED})
