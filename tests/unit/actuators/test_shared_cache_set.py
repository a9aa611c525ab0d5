# SPDX-License-Identifier: GPL-2.0-only
"""Two volumes of one cache set: its knobs have one value, and none is taken for somebody else's."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

from ebbgate.actuators.bcache_steps import Step
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.restore import restore
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.volume import Volume
from ebbgate.probes.topology import discover
from ebbgate.probes.volume_state import read_knobs
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.unrestored import UnrestoredOriginals
from ebbgate.units import NS_PER_S
from tests.fake_sysfs import SET_UUID, WatchedSysfs, failing, two_on_a_cache
from tests.knob_writer_fixture import REASON, kinds

KNOB = "congested_read_threshold_us"
ORIGINAL, TUNED = "2000", "0"


class SharedSet:
    """The writers of two volumes of a cache set, with the daemon's journal."""

    def __init__(self, folder: Path) -> None:
        self.state = folder
        self.fake = two_on_a_cache(folder / "sys")
        self.sysfs = WatchedSysfs(folder / "sys")
        self.journal = JournalWriter(folder / "journal.db", LastWritten(folder / "last-written"))
        # Each look at the clock is later than the shortest time between two writes.
        self.clock = count(NS_PER_S, 2 * NS_PER_S)
        self.first, self.second = (self.writer(each) for each in discover(self.fake.sysfs))

    def writer(self, volume: Volume) -> KnobWriter:
        return KnobWriter(self.sysfs, volume, self.journal, "this boot", now_ns=self.clock.__next__)

    def tune(self, writer: KnobWriter, value: str = TUNED) -> list[Outcome]:
        return writer.apply((Step(KNOB, value),), REASON)

    def override(self, writer: KnobWriter, value: str) -> list[Outcome]:
        """As `ebbgate set` does."""
        writer.pinned.add(KNOB)
        return self.tune(writer, value)

    def release(self, writer: KnobWriter) -> list[Outcome]:
        writer.unpin(KNOB)
        return writer.release((KNOB,), REASON)

    @property
    def value(self) -> str:
        return self.seen(self.first)[KNOB]

    @value.setter
    def value(self, value: str) -> None:
        self.fake.write(f"/sys/fs/bcache/{SET_UUID}/{KNOB}", value)

    def seen(self, writer: KnobWriter) -> dict[str, str]:
        return dict(read_knobs(self.sysfs, writer.volume))

    def look(self) -> list[str]:
        """Both look whether somebody else has changed their knobs; return the volumes."""
        both = (self.first, self.second)
        return [each.volume.name for each in both if each.check_manual(self.seen(each))]

    def restore_without_daemon(self) -> tuple[list[Outcome], int]:
        """Restore as `ebbgate restore` does; return the outcomes and how many entries are left."""
        self.journal.flush()
        last = LastWritten(self.state / "last-written")
        originals = UnrestoredOriginals.open(self.state / "journal.db", last, renew=False)
        outcomes = restore(originals, self.sysfs, "this boot")
        left = len(originals.left())
        originals.close()
        last.close()
        return outcomes, left


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedSet]:
    made = SharedSet(tmp_path)
    yield made
    made.journal.stop()


def test_the_override_of_one_volume_leaves_the_tuning_of_the_other(shared: SharedSet) -> None:
    shared.tune(shared.first)
    shared.tune(shared.second)
    assert kinds(shared.override(shared.first, "5000")) == [OutcomeKind.CHANGED]
    assert (shared.value, shared.look()) == ("5000", [])
    assert kinds(shared.tune(shared.second)) == [OutcomeKind.UNCHANGED]
    assert shared.value == "5000", "the override wins"
    outcome = shared.release(shared.first)[0]
    assert (outcome.kind, outcome.action.new) == (OutcomeKind.CHANGED, TUNED)
    assert outcome.action.reason.endswith("; bcache1 wants it")
    assert (shared.value, shared.look()) == (TUNED, [])
    shared.release(shared.second)
    assert (shared.value, shared.second.owned, shared.second.manual) == (ORIGINAL, {}, set())


def test_a_volume_that_is_tuned_later_waits_for_the_override(shared: SharedSet) -> None:
    shared.override(shared.first, "5000")
    outcome = shared.tune(shared.second)[0]
    assert (outcome.kind, outcome.error) == (
        OutcomeKind.UNCHANGED,
        "the override of bcache0 is in force",
    )
    assert (shared.value, shared.look()) == ("5000", [])
    shared.release(shared.first)
    assert (shared.value, shared.look()) == (TUNED, [])
    shared.release(shared.second)
    assert shared.value == ORIGINAL


def test_an_override_that_had_nothing_to_write_is_not_somebody_else_s(shared: SharedSet) -> None:
    assert kinds(shared.override(shared.first, ORIGINAL)) == [OutcomeKind.UNCHANGED]
    shared.tune(shared.second)
    assert (shared.value, shared.look()) == (ORIGINAL, [])
    shared.release(shared.first)
    assert (shared.value, shared.look()) == (TUNED, [])


def test_an_override_that_is_over_keeps_no_other_value_back(shared: SharedSet) -> None:
    shared.override(shared.first, "5000")
    shared.first.unpin(KNOB)
    assert kinds(shared.tune(shared.second)) == [OutcomeKind.CHANGED]
    assert (shared.release(shared.first), shared.value, shared.look()) == ([], TUNED, [])


def test_the_tuned_volume_leaves_before_the_override_ends(shared: SharedSet) -> None:
    shared.tune(shared.second)
    shared.override(shared.first, "5000")
    assert shared.release(shared.second) == []
    assert (shared.value, shared.look(), shared.second.owned) == ("5000", [], {})
    shared.release(shared.first)
    assert shared.value == ORIGINAL


def test_an_override_of_the_original_value_is_followed_by_the_tuned_one(shared: SharedSet) -> None:
    shared.tune(shared.second)
    shared.override(shared.first, ORIGINAL)
    assert (shared.value, shared.look()) == (ORIGINAL, [])
    shared.release(shared.first)
    assert (shared.value, shared.look()) == (TUNED, [])


def test_the_newest_of_two_overrides_wins_and_the_older_one_knows(shared: SharedSet) -> None:
    shared.override(shared.first, "5000")
    assert shared.first.replaced_by(KNOB) == ""
    shared.override(shared.second, "7000")
    assert (shared.value, shared.look()) == ("7000", [])
    assert (shared.first.replaced_by(KNOB), shared.second.replaced_by(KNOB)) == ("bcache1", "")
    shared.release(shared.first)
    assert shared.value == "7000"
    shared.release(shared.second)
    assert shared.value == ORIGINAL


def test_a_tuned_value_may_be_set_for_a_volume_whose_file_has_another(shared: SharedSet) -> None:
    shared.tune(shared.second)
    shared.override(shared.first, "5000")
    assert kinds(shared.override(shared.second, TUNED)) == [OutcomeKind.CHANGED]
    assert (shared.value, shared.look()) == (TUNED, [])


@pytest.mark.parametrize("value", ["777", ORIGINAL])
def test_what_somebody_else_wrote_is_manual_for_both(shared: SharedSet, value: str) -> None:
    shared.tune(shared.first)
    shared.override(shared.second, "5000")
    shared.look()
    shared.value = value
    # Once more where a volume wrote that value before its last look.
    assert sorted({*shared.look(), *shared.look()}) == ["bcache0", "bcache1"]
    assert (shared.first.manual, shared.second.manual) == ({KNOB}, {KNOB})
    assert shared.value == value


def test_somebody_else_ends_an_override_with_the_value_of_the_tuned_volume(
    shared: SharedSet,
) -> None:
    shared.tune(shared.first)
    shared.override(shared.second, "5000")
    shared.look()
    shared.look()
    shared.value = TUNED
    assert shared.look() == ["bcache1"]
    assert shared.value == TUNED


def test_a_release_does_not_overwrite_what_somebody_else_wrote(shared: SharedSet) -> None:
    shared.tune(shared.second)
    shared.override(shared.first, "5000")
    shared.value = "777"
    assert kinds(shared.release(shared.first)) == [OutcomeKind.MANUAL]
    assert (shared.value, shared.look()) == ("777", ["bcache1"])


def test_a_look_from_before_a_release_is_no_sign_of_somebody_else(shared: SharedSet) -> None:
    shared.tune(shared.second)
    shared.override(shared.first, "5000")
    shared.look()
    before = shared.seen(shared.second)
    shared.release(shared.first)
    assert shared.second.check_manual(before) == []
    shared.value = "5000"
    assert {*shared.look(), *shared.look()} == {"bcache1"}, "but that one is"


@pytest.mark.parametrize("value", ["5000", TUNED])
def test_a_volume_that_has_only_journalled_the_knob_wants_no_value(
    shared: SharedSet, value: str
) -> None:
    shared.override(shared.first, value)
    shared.second.claim((Step(KNOB, TUNED),), REASON)
    assert shared.look() == []
    shared.release(shared.first)
    assert (shared.value, shared.look()) == (ORIGINAL, [])
    assert shared.second.owned[KNOB].original == ORIGINAL
    shared.tune(shared.second)
    assert (shared.value, shared.look()) == (TUNED, [])
    shared.release(shared.second)
    assert shared.value == ORIGINAL


def test_a_value_that_could_not_be_handed_over_is_handed_over_later(shared: SharedSet) -> None:
    shared.tune(shared.second)
    shared.override(shared.first, "5000")
    shared.sysfs.before[KNOB] = failing(errno.EIO)
    assert kinds(shared.release(shared.first)) == [OutcomeKind.FAILED]
    assert (shared.look(), list(shared.first.owned)) == ([], [KNOB])
    del shared.sysfs.before[KNOB]
    shared.release(shared.first)
    assert (shared.value, shared.first.owned, shared.look()) == (TUNED, {}, [])


def test_a_look_during_a_write_is_no_sign_of_somebody_else(shared: SharedSet) -> None:
    shared.tune(shared.second)
    found: list[str] = []
    shared.sysfs.after[KNOB] = lambda: found.extend(
        shared.second.check_manual(shared.seen(shared.second))
    )
    shared.override(shared.first, "5000")
    shared.release(shared.first)
    assert (found, shared.value) == ([], TUNED)


def test_a_volume_that_leaves_meanwhile_waits_for_a_release(shared: SharedSet) -> None:
    shared.tune(shared.second)
    shared.override(shared.first, "5000")
    other = Thread(target=shared.release, args=(shared.second,))

    def leave_meanwhile() -> None:
        del shared.sysfs.before[KNOB]
        other.start()
        other.join(0.2)

    shared.sysfs.before[KNOB] = leave_meanwhile
    shared.release(shared.first)
    other.join()
    assert (shared.value, shared.second.owned) == (ORIGINAL, {})


def test_a_volume_that_is_gone_wants_nothing_any_more(shared: SharedSet) -> None:
    shared.override(shared.first, "5000")
    shared.tune(shared.second)
    shared.journal.keep_unrestored(shared.first.unrestored)
    shared.release(shared.second)
    assert shared.value == ORIGINAL


@pytest.mark.parametrize("overridden", ["bcache0", "bcache1"])
def test_the_original_survives_a_crash_during_an_override(
    shared: SharedSet, overridden: str
) -> None:
    writers = {"bcache0": shared.first, "bcache1": shared.second}
    one = writers.pop(overridden)
    (other,) = writers.values()
    shared.tune(one)
    shared.tune(other)
    shared.override(one, "5000")
    outcomes, left = shared.restore_without_daemon()
    assert (shared.value, left) == (ORIGINAL, 0)
    assert OutcomeKind.MANUAL not in kinds(outcomes), "ebbgate wrote the other value"


def test_the_original_survives_a_crash_after_a_value_was_handed_over(shared: SharedSet) -> None:
    shared.override(shared.first, "5000")
    shared.tune(shared.second, "600")
    shared.tune(shared.second, "700")
    shared.release(shared.first)
    assert shared.value == "700"
    outcomes, left = shared.restore_without_daemon()
    assert (shared.value, left, kinds(outcomes)) == (ORIGINAL, 0, [OutcomeKind.CHANGED])


def test_a_value_that_an_override_kept_back_is_recorded_before_it_is_written(
    shared: SharedSet,
) -> None:
    shared.tune(shared.second, "600")
    shared.override(shared.first, "5000")
    shared.tune(shared.second, "700")
    # A gate that is driven again takes a knob whose override is over as it is.
    shared.first.unpin(KNOB)
    shared.tune(shared.first)
    shared.tune(shared.second, "700")
    assert shared.value == "700"
    shared.restore_without_daemon()
    assert shared.value == ORIGINAL


def test_the_value_of_a_closed_entry_is_recorded_for_the_other_volume(shared: SharedSet) -> None:
    shared.tune(shared.second, "600")
    shared.override(shared.first, "5000")
    shared.tune(shared.second, "5000")
    assert (shared.release(shared.first), shared.value) == ([], "5000")
    shared.tune(shared.first, "5000")
    assert shared.first.owned[KNOB].original == ORIGINAL
    for each in (shared.second, shared.first):
        shared.release(each)
    assert shared.value == ORIGINAL


def test_a_restore_without_a_daemon_leaves_what_somebody_else_wrote(shared: SharedSet) -> None:
    shared.tune(shared.first)
    shared.override(shared.second, "5000")
    shared.value = "777"
    outcomes, left = shared.restore_without_daemon()
    assert (shared.value, left) == ("777", 0)
    assert kinds(outcomes) == [OutcomeKind.MANUAL, OutcomeKind.MANUAL]


def test_knobs_of_a_backing_device_are_apart(shared: SharedSet) -> None:
    knob = "sequential_cutoff"
    shared.first.pinned.add(knob)
    shared.first.apply((Step(knob, str(1 << 20)),), REASON)
    shared.second.apply((Step(knob, str(2 << 20)),), REASON)
    assert shared.look() == []
    shared.first.release((knob,), REASON)
    seen = (shared.seen(shared.first)[knob], shared.seen(shared.second)[knob])
    assert seen == (str(4 << 20), str(2 << 20))
