# SPDX-License-Identifier: GPL-2.0-only
"""`restore` repairs a kill before any system call of a first write, a write or a release.

Every call is tried; the scenario `stop-anywhere` also tries every knob of the administrator at each
call, and the real kernel.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.knobs.catalog import BY_NAME
from tests import syscalls
from tests.stop_harness import Machine, cannot_be_noticed, knob_of, next_knobs
from tests.syscalls import Call

pytestmark = [
    pytest.mark.skipif(not syscalls.possible(), reason="this process may not trace its children"),
    pytest.mark.timeout(120),
]


@pytest.fixture(params=["bcache", "dm_cache"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    made: Machine = getattr(Machine, request.param)(tmp_path / "machine")
    return made


def all_back(machine: Machine, where: str = "", by_administrator: str = "") -> None:
    """Every knob is what it must be in the end, and nothing is left in the journal."""
    assert machine.wrong(by_administrator) == {}, where
    assert machine.home.left() == [], where


def test_an_undisturbed_run_leaves_nothing_behind(machine: Machine) -> None:
    assert len(machine.moments()) > 60
    all_back(machine)


def test_no_original_is_lost_at_any_kill(machine: Machine) -> None:
    for number, (call, files) in enumerate(machine.moments()):
        machine.load(files)
        outcomes = machine.home.put_back()
        all_back(machine, f"call {number}: {call}, {outcomes}")


def test_an_administrators_write_at_the_kill_stays(machine: Machine) -> None:
    moments = machine.moments()
    due = next_knobs([call for call, _ in moments], machine.volume)
    for number, ((call, files), knob) in enumerate(zip(moments, due, strict=True)):
        machine.load(files)
        machine.home.administrator_writes(machine.volume, knob)
        outcomes = machine.home.put_back()
        all_back(machine, f"call {number}: {call}, {knob} by the administrator, {outcomes}", knob)


def test_an_administrators_write_stays_without_a_kill(machine: Machine) -> None:
    """For knobs of a gate only after its last write: before that they are checked once a second,
    since a request waits for their writes.
    """
    due = next_knobs([call for call, _ in machine.moments()], machine.volume)
    for number, knob in list(enumerate(due))[::5]:
        machine.reset()
        calls = machine.go_on_after(number, knob)
        gate_follows = not BY_NAME[knob].verified and before_gate(calls, number, knob)
        if gate_follows or cannot_be_noticed(calls, number, knob):
            continue
        all_back(machine, f"call {number}: {calls[number:][:1]}, {knob} by the administrator", knob)


def before_gate(calls: list[Call], number: int, knob: str) -> bool:
    """Is the knob written more than once after this call, thus not only restored?"""
    writes = [call for call in calls[number:] if knob_of(call) == knob and call.name == "rename"]
    return len(writes) > 1


def test_a_real_kill_leaves_the_same_files(machine: Machine) -> None:
    """The other tests load files that were copied while the process was stopped."""
    calls = [call for call, _ in machine.moments()]
    for number in range(0, len(calls), 9):
        machine.reset()
        call = machine.stop_at(number)
        machine.home.put_back()
        all_back(machine, f"call {number}: {call}")


def test_a_killed_restore_is_completed_by_the_next(machine: Machine) -> None:
    moments = machine.moments()
    _, middle = moments[len(moments) // 2]
    machine.load(middle)
    assert machine.home.left()
    for number, (call, files) in enumerate(machine.moments(machine.home.put_back)):
        machine.load(files)
        machine.home.put_back()
        all_back(machine, f"call {number}: {call}")
