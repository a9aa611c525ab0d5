# SPDX-License-Identifier: GPL-2.0-only
"""When what is left of volumes that are gone is tried again, without a machine."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from ebbgate.daemon.unrestored_volumes import UnrestoredVolumes
from ebbgate.model.decision import JournalEntry
from ebbgate.units import NS_PER_S
from tests.builders import journal_entry
from tests.waiting import until

SET = "/sys/fs/bcache/11111111-2222-3333-4444-555555555555/congested_read_threshold_us"
SET_WIDE = journal_entry("congested_read_threshold_us", path=SET)
OF_THE_DISK = journal_entry("queue_depth:vda", path="/sys/block/vda/device/queue_depth")


class Left:
    """The loop of a volume that is gone; `tries`: why each restore was tried."""

    def __init__(self, name: str, *entries: JournalEntry) -> None:
        self.tries: list[str] = []
        self.disclaimed: list[str] = []
        self.now: Callable[[], object] = lambda: None
        claims = SimpleNamespace(disclaim=lambda entry: self.disclaimed.append(entry.knob))
        self.volume = SimpleNamespace(name=name)
        self.writer = SimpleNamespace(
            unrestored=list(entries), journal=SimpleNamespace(claims=claims)
        )
        self.driver = SimpleNamespace(release_what_is_left=self._release)

    def _release(self, why: str) -> None:
        self.now()
        self.tries.append(why)


def kept(*loops: Any) -> UnrestoredVolumes:
    made = UnrestoredVolumes()
    for each in loops:
        made.keep(each)
    return made


def test_a_try_follows_the_last_one_by_ten_seconds() -> None:
    """The kernel may log each refusal."""
    left = Left("bcache0", OF_THE_DISK)
    volumes = kept(left)
    for now_s, tries in ((1, 1), (2, 1), (10.9, 1), (11, 2), (20.9, 2), (21, 3)):
        volumes.try_when_due(round(now_s * NS_PER_S))
        until(lambda: not volumes.may_write("bcache0"), "the try is over")
        assert len(left.tries) == tries, now_s
    assert set(left.tries) == {"the volume is gone or changed"}


def test_a_try_that_hangs_is_not_followed_by_another_one() -> None:
    """No other loop follows a volume of the name meanwhile: both would write."""
    left, go = Left("bcache0", OF_THE_DISK), Event()
    left.now = lambda: go.wait(10)
    volumes = kept(left)
    assert volumes.may_write("bcache0") is False
    for now_s in (1, 20, 40):
        volumes.try_when_due(now_s * NS_PER_S)
        assert volumes.may_write("bcache0") is True
        assert volumes.may_write("bcache1") is False
    go.set()
    until(lambda: not volumes.may_write("bcache0"), "the try is over")
    assert len(left.tries) == 1


def test_what_is_restored_is_forgotten_and_only_the_rest_is_tried() -> None:
    first, second = Left("bcache0", OF_THE_DISK), Left("bcache1", OF_THE_DISK)
    volumes = kept(first, second, Left("bcache2"))
    assert volumes.names == ["bcache0", "bcache1"]
    first.writer.unrestored.clear()
    volumes.try_when_due(NS_PER_S)
    until(lambda: second.tries, "the other one is tried")
    assert (volumes.names, first.tries) == (["bcache1"], [])
    assert volumes.hand_over("bcache1") == [OF_THE_DISK]
    assert (volumes.names, volumes.hand_over("bcache1")) == ([], [])


def test_a_bug_with_one_volume_keeps_no_other_one_from_a_restore(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = Left("bcache0", OF_THE_DISK), Left("bcache1", OF_THE_DISK)

    def bug() -> None:
        raise ZeroDivisionError("a bug")

    first.now = bug
    kept(first, second).try_at_end(10)
    assert second.tries == ["ebbgated stops"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_other_volumes_of_the_set_may_restore_its_knobs_but_not_the_disks() -> None:
    left = Left("bcache0", SET_WIDE, OF_THE_DISK)
    volumes = kept(left)
    assert left.disclaimed == [SET_WIDE.knob]
    volumes.try_at_end(10)
    assert left.disclaimed == [SET_WIDE.knob] * 2, "a release claims it again"
