# SPDX-License-Identifier: GPL-2.0-only
"""Each system call on knobs and journal fails once: no original is lost, each failure is named.

Here each call fails with one errno after the other in turn; the scenario `errno-everywhere` tries
all of them at each call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from ebbgate.actuators.volume_workers import VolumeWorkers
from ebbgate.knobs.places import knob_path
from ebbgate.model.decision import OutcomeKind
from ebbgate.units import MINUTE_NS, NS_PER_S
from tests import syscalls
from tests.errno_harness import ERRNOS, ErrnoHarness, hang_s
from tests.knob_life import knobs, wrong
from tests.stop_harness import OTHER_SET_UUID, Machine, knob_of
from tests.syscalls import Call

DEADLINES_NS = tuple(3 * NS_PER_S // 2 * 4**power for power in range(4))
"""A volume that waits for the one that hangs fails at each of them, one on a slow machine not."""
pytestmark = [
    pytest.mark.skipif(not syscalls.possible(), reason="this process may not trace its children"),
    pytest.mark.timeout(300),
]


@pytest.fixture(params=["bcache", "dm_cache"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> ErrnoHarness:
    return ErrnoHarness(getattr(Machine, request.param)(tmp_path / "machine"))


@pytest.mark.parametrize(
    "lives", [40, pytest.param(1000, marks=[pytest.mark.full, pytest.mark.timeout(600)])]
)
def test_a_failing_call_loses_no_original_and_is_reported_once(
    harness: ErrnoHarness, lives: int
) -> None:
    broken = []
    for place in every(len(harness.calls), lives):
        found = harness.fails(place, ERRNOS[place % len(ERRNOS)])
        if found.broken:
            broken.append(f"{place} {found}")
    assert not broken, "\n".join(broken)


def test_a_hanging_journal_prevents_first_writes_only(harness: ErrnoHarness) -> None:
    own = [
        place for place, call in enumerate(harness.calls) if call.thread != harness.calls[0].thread
    ]
    broken, tried = [], 0
    for place in own[:: len(own) // 8]:
        # The threads take turns otherwise now, so it may be a call of the other one.
        found = harness.hangs(place)
        tried += found.call is not None
        if found.broken:
            broken.append(f"{place} {found}")
    assert not broken, "\n".join(broken)
    assert tried > 3


def test_a_restore_with_a_failing_call_loses_nothing_and_reports_it(harness: ErrnoHarness) -> None:
    moments = harness.machine.moments()
    held = moments[len(moments) // 2][1]
    harness.machine.load(held)
    assert harness.machine.home.left()
    broken = []
    for place in range(1000):
        found = harness.restore_fails(held, place, ERRNOS[place % len(ERRNOS)])
        if found.broken:
            broken.append(f"{place} {found}")
        if found.call is None:
            break
    assert not broken, "\n".join(broken)


def test_a_hanging_volume_does_not_block_the_restore_of_another(tmp_path: Path) -> None:
    machine, other = Machine.two(tmp_path / "machine")
    home, told = machine.home, tmp_path / "told"
    others = home.values(other)
    home.tune(machine.volume, other)
    changed = home.values(other)
    assert wrong(others, changed)
    held = machine.snapshot()

    def work(deadline_ns: int = 10 * MINUTE_NS) -> None:
        workers = VolumeWorkers(lambda: None, deadline_ns=deadline_ns)
        outcomes = [(o.action.volume, o.kind, o.error) for o in home.put_back(workers)]
        told.write_text(json.dumps(outcomes))

    own = sum(own_knob(machine, call) for call, _ in machine.moments(work))
    assert own > 20
    for place in range(0, own, own // 4):
        for deadline_ns in DEADLINES_NS:
            machine.load(held)
            for knob, value in changed.items():
                machine.home.sysfs.write_text(str(knob_path(other, knob)), value)
            ends_s = hang_s(deadline_ns / NS_PER_S)
            hung = hang_at(machine, place, partial(work, deadline_ns), ends_s)
            outcomes = json.loads(told.read_text())
            if (other.name, OutcomeKind.FAILED) not in [(name, kind) for name, kind, _ in outcomes]:
                break
        failed = [error for volume, kind, error in outcomes if kind == OutcomeKind.FAILED]
        assert wrong(others, home.values(other)) == {}, hung
        assert {volume for volume, kind, _ in outcomes if kind == OutcomeKind.FAILED} == {"bcache0"}
        assert "bcache0 hangs at" in failed[0]
        home.put_back()
        assert machine.wrong() == {}, hung
        assert home.left() == [], hung


def every(calls: int, lives: int) -> range:
    """Places of calls, evenly spread over at most this many lives."""
    return range(0, calls, -(-calls // lives))


def own_knob(machine: Machine, call: Call) -> bool:
    """Is it a call on a knob of the machine's first volume?"""
    others = ("/bcache1/", "/vdc/", OTHER_SET_UUID)
    return knob_of(call) in knobs(machine.volume) and not any(each in call.path for each in others)


def hang_at(machine: Machine, place: int, work: Callable[[], None], end_s: float) -> Call:
    """Of the calls on knobs of the first volume the one with this number, from 0, never returns.

    `end_s`: after which time without a call the restore itself hangs.
    """
    with machine.child(work) as child:
        calls = (call for call in child.calls() if own_knob(machine, call))
        call = next(islice(calls, place, None))
        child.hang()
        while child.next_call(end_s) is not None:
            pass
    assert child.exit_code == 0, call
    return call
