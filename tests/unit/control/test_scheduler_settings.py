# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a volume: what its disk's own I/O scheduler was set to outlives ebbgate's switch."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from ebbgate.model.decision import JournalEntry, OutcomeKind
from tests.fake_sysfs import IOSCHED, failing, switch_resets_length, switch_resets_settings
from tests.volume_loop_fixture import LoopHarness

SETTINGS, SCHEDULER = "iosched:vda", "scheduler:vda"
QUEUE = "/sys/block/vda/queue"
MINE = {"fifo_batch": "16", "read_expire": "200", "writes_starved": "4"}


class SetScheduler:
    """A volume on a disk whose mq-deadline a person has set."""

    def __init__(self, harness: LoopHarness, scheduler: str = "[mq-deadline] bfq none") -> None:
        self.harness = harness
        harness.fake.write(f"{QUEUE}/scheduler", scheduler)
        switch_resets_length(harness.fake, harness.sysfs, "vda")
        self.folder = switch_resets_settings(harness.fake, harness.sysfs, "vda")
        if "[mq-deadline]" in scheduler:
            self.set_by_hand(MINE)

    def set_by_hand(self, settings: dict[str, str]) -> None:
        for name, value in settings.items():
            self.harness.fake.write(f"{self.folder}/{name}", value)

    def choose(self, scheduler: str) -> None:
        """Somebody chooses a scheduler by hand, and ebbgate looks."""
        self.harness.sysfs.write_text(f"{QUEUE}/scheduler", scheduler)
        self.harness.tick()

    def use(self, scheduler: str) -> None:
        """A policy with this scheduler, after the shortest time between two writes."""
        self.harness.now_ms += 2000
        policy = replace(self.harness.loop.policy, backing_scheduler=scheduler)
        self.harness.loop.set_policy(policy)
        self.harness.tick()

    def stop(self) -> None:
        self.harness.loop.release("ebbgated stops")
        self.harness.settle()

    @property
    def settings(self) -> dict[str, str]:
        names = self.harness.fake.sysfs.names(self.folder)
        return {name: self.harness.fake.read(f"{self.folder}/{name}") for name in names}

    @property
    def journalled(self) -> bool:
        return SETTINGS in self.harness.kept.open


@pytest.fixture
def disk(enforced: LoopHarness) -> SetScheduler:
    return SetScheduler(enforced)


def test_settings_are_journalled_before_the_switch_and_put_back_at_the_stop(
    disk: SetScheduler,
) -> None:
    first: list[bool] = []
    disk.harness.sysfs.before["scheduler"] = lambda: first.append(disk.journalled)
    disk.use("bfq")
    assert (disk.settings, first) == (IOSCHED["bfq"], [True])
    disk.stop()
    assert (disk.settings, disk.harness.kept.open) == (MINE, set())


def test_a_policy_without_a_scheduler_puts_them_back(disk: SetScheduler) -> None:
    for _ in range(2):
        disk.use("bfq")
        assert disk.settings == IOSCHED["bfq"]
        disk.use("")
        assert (disk.settings, disk.journalled) == (MINE, False)


def test_what_was_put_back_is_reported(disk: SetScheduler) -> None:
    disk.use("bfq")
    disk.stop()
    (done,) = [each for each in disk.harness.kept.written if each.action.knob == SETTINGS]
    assert (done.kind, done.action.new) == (
        OutcomeKind.CHANGED,
        "fifo_batch=16 read_expire=200 writes_starved=4",
    )


@pytest.mark.parametrize("chosen", ["mq-deadline", "kyber"])
def test_a_scheduler_that_somebody_chooses_keeps_its_own_settings(
    disk: SetScheduler, chosen: str
) -> None:
    disk.use("bfq")
    disk.choose(chosen)
    assert disk.harness.loop.writer.manual == {SCHEDULER}
    disk.stop()
    assert (disk.settings, disk.journalled) == (IOSCHED[chosen], False)


def test_after_a_release_the_settings_of_the_scheduler_that_somebody_chose_are_kept(
    disk: SetScheduler,
) -> None:
    disk.use("bfq")
    disk.choose("kyber")
    disk.set_by_hand({"read_lat_nsec": "5"})
    assert disk.harness.loop.resume_control(SCHEDULER) == (SCHEDULER,)
    disk.harness.now_ms += 2000
    disk.harness.tick()
    assert disk.settings == IOSCHED["bfq"]
    disk.stop()
    assert disk.settings == {"read_lat_nsec": "5"}


def test_a_disk_without_a_scheduler_has_no_settings_to_keep(enforced: LoopHarness) -> None:
    disk = SetScheduler(enforced, "[none] bfq mq-deadline")
    disk.use("bfq")
    assert (disk.settings, disk.journalled) == (IOSCHED["bfq"], False)
    disk.use("")
    assert disk.settings == {}
    # Somebody gives it a scheduler: from now on there are some.
    disk.choose("mq-deadline")
    disk.set_by_hand(MINE)
    disk.use("bfq")
    assert disk.journalled
    disk.stop()
    assert disk.settings == MINE


def test_a_disk_that_has_bfq_already_keeps_what_it_was_set_to(enforced: LoopHarness) -> None:
    disk = SetScheduler(enforced, "mq-deadline [bfq] none")
    disk.use("bfq")
    disk.set_by_hand({"low_latency": "0"})
    disk.stop()
    assert disk.settings == {**IOSCHED["bfq"], "low_latency": "0"}
    assert not disk.journalled


def test_without_the_settings_in_the_journal_the_scheduler_is_not_switched(
    disk: SetScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = disk.harness.kept.put

    def refuse(entry: JournalEntry) -> JournalEntry:
        if entry.knob == SETTINGS:
            raise OSError(errno.ENOSPC, "No space left on device")
        return put(entry)

    monkeypatch.setattr(disk.harness.kept, "put", refuse)
    disk.use("bfq")
    assert disk.settings == MINE
    assert disk.harness.kept.open.isdisjoint({SETTINGS, SCHEDULER})


def test_a_kernel_without_bfq_leaves_the_settings_alone(disk: SetScheduler) -> None:
    disk.harness.sysfs.before["scheduler"] = failing(errno.EINVAL)
    disk.use("bfq")
    assert (disk.settings, disk.journalled) == (MINE, False)


def test_settings_that_the_kernel_refuses_are_tried_again(disk: SetScheduler) -> None:
    disk.use("bfq")
    disk.harness.sysfs.before["read_expire"] = failing(errno.EBUSY)
    disk.use("")
    assert (disk.settings["writes_starved"], disk.settings["read_expire"]) == ("4", "500")
    assert disk.journalled
    del disk.harness.sysfs.before["read_expire"]
    disk.harness.now_ms += 61_000
    disk.harness.tick()
    assert (disk.settings, disk.journalled) == (MINE, False)
