# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a volume: the length of a disk's queue, which each switch of the scheduler resets."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.knobs.knob import ValueForm, parse_value
from ebbgate.model.decision import JournalEntry, OutcomeKind
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode
from tests.fake_sysfs import failing, switch_resets_length
from tests.unit.control.test_volume_loop_dm import DmLoopHarness
from tests.volume_loop_fixture import DEADLINE_S, LoopHarness

LENGTH, SCHEDULER = "nr_requests:vda", "scheduler:vda"
LENGTH_FILE, SCHEDULER_FILE = (
    f"/sys/block/vda/queue/{name}" for name in ("nr_requests", "scheduler")
)


@pytest.fixture
def tuned(enforced: LoopHarness) -> LoopHarness:
    """A volume on a disk whose queue a person has made longer."""
    found_with(enforced, "200")
    return enforced


@pytest.fixture
def dm(tmp_path: Path) -> Iterator[DmLoopHarness]:
    made = DmLoopHarness(tmp_path)
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def found_with(
    harness: LoopHarness, length: str, scheduler: str = "[mq-deadline] bfq none"
) -> None:
    """The disk was like this when the volume was found."""
    harness.fake.write(LENGTH_FILE, length)
    harness.fake.write(SCHEDULER_FILE, scheduler)
    word = parse_value(ValueForm.CHOICE, scheduler)
    harness.before = {**harness.before, LENGTH: length, SCHEDULER: word}
    switch_resets_length(harness.fake, harness.sysfs, "vda")


def use(harness: LoopHarness, scheduler: str) -> None:
    """Give the volume a policy with this scheduler, after the shortest time between two writes."""
    harness.now_ms += 2000
    harness.loop.set_policy(replace(harness.loop.policy, backing_scheduler=scheduler))
    harness.tick()


def test_a_switch_keeps_the_length_and_the_stop_leaves_everything_as_before(
    tuned: LoopHarness,
) -> None:
    journalled: list[set[str]] = []
    tuned.sysfs.before["scheduler"] = lambda: journalled.append(set(tuned.kept.open))
    use(tuned, "bfq")
    assert (tuned.knob(SCHEDULER), tuned.knob(LENGTH)) == ("bfq", "200")
    assert {LENGTH, SCHEDULER} <= journalled[0], "the originals come first"
    tuned.tick()
    assert tuned.loop.writer.manual == set()
    tuned.loop.release("ebbgated stops")
    tuned.settle()
    assert tuned.knobs() == tuned.before
    assert tuned.kept.open == set()


def test_a_policy_without_a_scheduler_leaves_the_length_as_before(tuned: LoopHarness) -> None:
    use(tuned, "bfq")
    use(tuned, "")
    assert (tuned.knob(SCHEDULER), tuned.knob(LENGTH)) == ("mq-deadline", "200")
    assert tuned.kept.open.isdisjoint({LENGTH, SCHEDULER})


def test_a_length_that_somebody_sets_under_bfq_is_manual_and_outlives_the_switch_back(
    tuned: LoopHarness,
) -> None:
    use(tuned, "bfq")
    tuned.fake.write(LENGTH_FILE, "128")
    tuned.tick()
    assert tuned.loop.writer.manual == {LENGTH}
    tuned.loop.release("ebbgated stops")
    tuned.settle()
    assert tuned.knobs() == {**tuned.before, LENGTH: "128"}


def test_a_length_that_is_written_between_two_looks_outlives_the_switch_back(
    tuned: LoopHarness,
) -> None:
    use(tuned, "bfq")
    tuned.fake.write(LENGTH_FILE, "128")
    tuned.loop.release("ebbgated stops")
    tuned.settle()
    assert tuned.knobs() == {**tuned.before, LENGTH: "128"}
    assert tuned.kept.open == set()


def test_a_length_that_is_released_is_journalled_again_under_bfq(tuned: LoopHarness) -> None:
    use(tuned, "bfq")
    tuned.fake.write(LENGTH_FILE, "128")
    tuned.tick()
    assert tuned.loop.resume_control(LENGTH) == (LENGTH,)
    tuned.tick()
    assert (tuned.knob(LENGTH), LENGTH in tuned.kept.open) == ("128", True)
    tuned.loop.release("ebbgated stops")
    tuned.settle()
    assert tuned.knobs() == {**tuned.before, LENGTH: "128"}


@pytest.mark.parametrize(("disk", "length"), [("32", "64"), ("300", "300"), ("3000", "2048")])
def test_a_disk_without_a_scheduler_gets_no_shorter_queue_than_bfq_has_by_default(
    enforced: LoopHarness, disk: str, length: str
) -> None:
    """Its length is that of the disk; bfq takes at most 2048."""
    enforced.fake.write("/sys/block/vda/device/queue_depth", disk)
    enforced.before["queue_depth:vda"] = disk
    found_with(enforced, disk, "[none] bfq")
    use(enforced, "bfq")
    assert (enforced.knob(SCHEDULER), enforced.knob(LENGTH)) == ("bfq", length)
    # Without a scheduler the kernel refuses more than the disk takes.
    enforced.sysfs.before["nr_requests"] = failing(errno.EINVAL)
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knobs() == enforced.before
    assert not [each for each in enforced.kept.written if each.kind is OutcomeKind.FAILED]


def test_a_shorter_queue_without_a_scheduler_is_short_again(enforced: LoopHarness) -> None:
    found_with(enforced, "16", "[none] bfq")
    use(enforced, "bfq")
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knobs() == enforced.before


@pytest.mark.parametrize("scheduler", ["[mq-deadline] bfq none", "[none] bfq"])
def test_what_a_person_asks_for_stays_over_both_switches(
    enforced: LoopHarness, scheduler: str
) -> None:
    tuned = enforced
    tuned.fake.write("/sys/block/vda/device/queue_depth", "200")
    found_with(tuned, "200", scheduler)
    wanted = Override(OverrideKind.SET, "bcache0", "jo", 1, None, LENGTH, "128", 1)
    tuned.loop.set_overrides((ActiveOverride(wanted, None),))
    tuned.tick()
    for wish in ("bfq", ""):
        use(tuned, wish)
        assert tuned.knob(LENGTH) == "128"
    tuned.loop.set_overrides(())
    tuned.tick()
    assert tuned.knob(LENGTH) == "200"


def test_without_the_original_of_the_length_the_scheduler_is_not_switched(
    tuned: LoopHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = tuned.kept.put

    def refuse(entry: JournalEntry) -> JournalEntry:
        if entry.knob == LENGTH:
            raise OSError(errno.ENOSPC, "No space left on device")
        return put(entry)

    monkeypatch.setattr(tuned.kept, "put", refuse)
    use(tuned, "bfq")
    assert (tuned.knob(SCHEDULER), tuned.knob(LENGTH)) == ("mq-deadline", "200")
    assert tuned.kept.open.isdisjoint({LENGTH, SCHEDULER})


def test_a_kernel_without_bfq_leaves_nothing_in_the_journal(tuned: LoopHarness) -> None:
    tuned.sysfs.before["scheduler"] = failing(errno.EINVAL)
    use(tuned, "bfq")
    assert tuned.knob(LENGTH) == "200"
    assert tuned.kept.open.isdisjoint({LENGTH, SCHEDULER})


def test_a_length_that_bfq_refuses_is_put_back_all_the_same(tuned: LoopHarness) -> None:
    tuned.sysfs.before["nr_requests"] = failing(errno.EIO)
    use(tuned, "bfq")
    assert (tuned.knob(SCHEDULER), tuned.knob(LENGTH)) == ("bfq", "64")
    del tuned.sysfs.before["nr_requests"]
    tuned.tick()
    tuned.loop.release("ebbgated stops")
    tuned.settle()
    assert tuned.knobs() == tuned.before


def test_the_number_of_dm_cache_counts_under_bfq_and_the_original_after_it(
    dm: DmLoopHarness,
) -> None:
    found_with(dm, "128")
    dm.tick()
    assert dm.fake.read(LENGTH_FILE) == "768"
    for scheduler in ("bfq", ""):
        use(dm, scheduler)
        dm.now_ms += 2000
        dm.tick()
        assert dm.fake.read(LENGTH_FILE) == "768"
    use(dm, "bfq")
    dm.loop.set_mode(Mode.ADVISE, "asked for")
    dm.settle()
    assert dm.fake.read(SCHEDULER_FILE) == "mq-deadline"
    assert dm.fake.read(LENGTH_FILE) == "128"
    assert dm.kept.open == set()


def test_a_longer_queue_of_dm_cache_stays_longer_under_bfq(dm: DmLoopHarness) -> None:
    found_with(dm, "1024")
    use(dm, "bfq")
    assert dm.fake.read(LENGTH_FILE) == "1024"
    dm.release("ebbgated stops")
    assert dm.fake.read(LENGTH_FILE) == "1024"
