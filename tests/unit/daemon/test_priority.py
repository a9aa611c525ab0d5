# SPDX-License-Identifier: GPL-2.0-only
"""The scheduling class of the loop's thread follows the gate."""

from __future__ import annotations

import errno
import os

import pytest

from ebbgate.daemon.priority import Priority
from ebbgate.model.volume import Mode
from tests.volume_loop_fixture import LoopHarness


class Scheduler:
    """Takes the classes that are asked for; `refuses`: these threads, as a kernel would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self.refuses: set[int] = set()
        monkeypatch.setattr(os, "sched_setscheduler", self.set)

    def set(self, pid: int, policy: int, parameter: os.sched_param) -> None:
        self.asked.append((pid, policy, parameter.sched_priority))
        if pid in self.refuses:
            raise PermissionError(errno.EPERM, "Operation not permitted")


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    return Scheduler(monkeypatch)


def test_only_a_change_of_class_is_requested(scheduler: Scheduler) -> None:
    priority = Priority(0)
    for urgent in (False, True, True, False, False):
        priority.set(urgent=urgent)
    other, realtime = (0, os.SCHED_OTHER, 0), (0, os.SCHED_RR, 1)
    assert scheduler.asked == [other, realtime, other]


def test_every_thread_is_changed(scheduler: Scheduler) -> None:
    Priority(0, 17).set(urgent=True)
    assert scheduler.asked == [(0, os.SCHED_RR, 1), (17, os.SCHED_RR, 1)]


def test_a_refused_class_is_not_requested_again(scheduler: Scheduler) -> None:
    scheduler.refuses = {0}
    priority = Priority(0)
    priority.set(urgent=True)
    priority.set(urgent=False)
    assert scheduler.asked == [(0, os.SCHED_RR, 1)]


def test_a_thread_that_refuses_leaves_no_other_at_real_time(scheduler: Scheduler) -> None:
    scheduler.refuses = {17}
    priority = Priority(0, 17)
    priority.set(urgent=True)
    priority.set(urgent=False)
    assert scheduler.asked == [(0, os.SCHED_RR, 1), (17, os.SCHED_RR, 1), (0, os.SCHED_OTHER, 0)]


def test_a_loop_is_urgent_while_its_gate_is_open_in_a_gap(enforced: LoopHarness) -> None:
    urgent = [enforced.loop.urgent]
    for happens in (enforced.idle, enforced.busy):
        happens()
        urgent.append(enforced.loop.urgent)
    assert urgent == [False, True, False]


def test_a_loop_without_actions_is_never_urgent(enforced: LoopHarness) -> None:
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.idle()
    assert not enforced.loop.urgent
