# SPDX-License-Identifier: GPL-2.0-only
"""The scheduling class of the daemon's threads follows the gate."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from ebbgate.daemon.priority import LOOP_PRIORITY, OTHERS_PRIORITY, Priority
from ebbgate.model.volume import Mode
from tests.programs import REPO
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


OTHER = (os.SCHED_OTHER, 0)


def test_only_a_change_of_class_is_requested(scheduler: Scheduler) -> None:
    priority = Priority(5, lambda: [5])
    for urgent in (False, True, True, False, False):
        priority.set(urgent=urgent)
    assert scheduler.asked == [(5, *OTHER), (5, os.SCHED_RR, 2), (5, *OTHER)]


def test_the_loop_runs_before_every_other_thread(scheduler: Scheduler) -> None:
    Priority(5, lambda: [17, 5]).set(urgent=True)
    assert scheduler.asked == [(5, os.SCHED_RR, 2), (17, os.SCHED_RR, 1)]


def test_no_thread_runs_before_a_loop_that_lacks_the_right(scheduler: Scheduler) -> None:
    scheduler.refuses = {5}
    priority = Priority(5, lambda: [17, 5])
    for urgent in (True, False, True):
        priority.set(urgent=urgent)
    assert scheduler.asked == [(5, os.SCHED_RR, 2)]


@pytest.mark.parametrize(
    ("urgent", "then"),
    [
        (True, [(17, os.SCHED_RR, 1)]),
        (False, [(5, *OTHER), (17, *OTHER)]),
    ],
)
def test_a_thread_that_started_meanwhile_is_changed(
    scheduler: Scheduler, urgent: bool, then: list[tuple[int, int, int]]
) -> None:
    running = [5]
    priority = Priority(5, lambda: running)
    priority.set(urgent=True)
    running.append(17)
    priority.set(urgent=urgent)
    assert scheduler.asked == [(5, os.SCHED_RR, 2), *then]


def test_a_new_thread_with_the_id_of_one_that_ended_is_changed(scheduler: Scheduler) -> None:
    running = [5, 17]
    priority = Priority(5, lambda: running)
    for running[1:] in ([17], [], [17]):
        priority.set(urgent=True)
    assert scheduler.asked.count((17, os.SCHED_RR, 1)) == 2


def test_the_service_allows_the_priorities() -> None:
    unit = (REPO / "packaging/systemd/ebbgated.service.in").read_text()
    assert OTHERS_PRIORITY < LOOP_PRIORITY
    assert f"\nLimitRTPRIO={LOOP_PRIORITY}\n" in unit


def test_all_threads_of_this_process_are_changed(scheduler: Scheduler) -> None:
    ends = threading.Event()
    beside = threading.Thread(target=ends.wait)
    beside.start()
    try:
        Priority(threading.get_native_id()).set(urgent=True)
    finally:
        ends.set()
        beside.join()
    assert (threading.get_native_id(), os.SCHED_RR, 2) in scheduler.asked
    assert (beside.native_id, os.SCHED_RR, 1) in scheduler.asked


def test_a_thread_that_starts_just_now_leaves_the_loop_as_it_is(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.Thread()])
    Priority(threading.get_native_id()).set(urgent=True)
    assert scheduler.asked == []


def test_a_thread_that_refuses_leaves_no_other_at_real_time(scheduler: Scheduler) -> None:
    scheduler.refuses = {17}
    priority = Priority(5, lambda: [17, 5])
    priority.set(urgent=True)
    priority.set(urgent=False)
    assert scheduler.asked == [(5, os.SCHED_RR, 2), (17, os.SCHED_RR, 1), (5, *OTHER)]


def test_a_thread_that_has_ended_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[int] = []

    def kernel(thread: int, *_words: object) -> None:
        if thread == 17:
            raise ProcessLookupError(errno.ESRCH, "No such process")
        changed.append(thread)

    monkeypatch.setattr(os, "sched_setscheduler", kernel)
    Priority(5, lambda: [17, 5]).set(urgent=True)
    assert changed == [5]


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
