# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a volume: the queues and the I/O scheduler of the disks below it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.volume import NO_USERS, DiskUsers, Mode
from ebbgate.policy.defaults import Policy
from ebbgate.policy.engine import Ruling
from ebbgate.policy.strategies.destage_state import DestageParams
from tests.builders import device
from tests.volume_loop_fixture import LoopHarness

DEPTH, SCHEDULER = "queue_depth:vda", "scheduler:vda"
SCHEDULER_FILE = "/sys/block/vda/queue/scheduler"
DEPTH_FILE = "/sys/block/vda/device/queue_depth"


@pytest.fixture
def bfq(enforced: LoopHarness) -> LoopHarness:
    """A tuned volume on a disk with bfq."""
    enforced.fake.write(SCHEDULER_FILE, "mq-deadline [bfq] none")
    enforced.before[SCHEDULER] = "bfq"
    enforced.loop.set_policy(Policy(destage=DestageParams(queue_depth=8)))
    enforced.tick()
    return enforced


def test_a_gap_opens_the_gate_wide_on_a_shallow_queue(bfq: LoopHarness) -> None:
    bfq.idle()
    assert bfq.gate() is GateKind.OPEN
    assert (bfq.knob(DEPTH), bfq.knob("writeback_percent")) == ("8", "0")
    bfq.busy()
    assert (bfq.gate(), bfq.knob(DEPTH)) == (GateKind.CLOSED, "8")
    bfq.tick()
    bfq.tick()
    assert (bfq.gate(), bfq.knob(DEPTH)) == (GateKind.CLOSED, "32")
    bfq.loop.release("ebbgated stops")
    bfq.settle()
    assert bfq.knobs() == bfq.before


def test_a_depth_that_somebody_else_sets_in_a_gap_stays(
    bfq: LoopHarness,
) -> None:
    bfq.idle()
    bfq.fake.write(DEPTH_FILE, "16")
    bfq.tick(state="idle")
    bfq.tick(state="idle")
    assert bfq.loop.writer.manual == {DEPTH}
    assert (bfq.gate(), bfq.knob(DEPTH)) == (GateKind.OPEN, "16")
    bfq.loop.release("ebbgated stops")
    bfq.settle()
    assert bfq.knobs() == {**bfq.before, DEPTH: "16"}


def test_a_disk_that_becomes_shared_in_a_gap_has_a_deep_queue_again(bfq: LoopHarness) -> None:
    bfq.idle()
    assert bfq.knob(DEPTH) == "8"
    bfq.loop.set_disk_users(DiskUsers(("bcache1",)))
    bfq.settle()
    assert (bfq.knob(DEPTH), DEPTH in bfq.loop.writer.owned) == ("32", False)
    bfq.tick(state="idle")
    assert (bfq.gate(), bfq.knob(DEPTH)) == (GateKind.OPEN, "32")
    queue = bfq.kept.status.proposals[0].conditions[0]
    assert (queue.measured, queue.holds) == ("bfq, depth 32, shared with bcache1", False)
    bfq.loop.set_disk_users(NO_USERS)
    bfq.tick(state="idle")
    assert (bfq.gate(), bfq.knob(DEPTH)) == (GateKind.OPEN, "8")


def test_a_disk_that_is_reset_in_a_gap_gets_its_shallow_queue_again(bfq: LoopHarness) -> None:
    bfq.idle()
    bfq.fake.write(DEPTH_FILE, "32")
    bfq.tick(state="idle")
    assert bfq.loop.writer.manual == set()
    bfq.busy()
    bfq.tick()
    bfq.idle()
    assert (bfq.gate(), bfq.knob(DEPTH)) == (GateKind.OPEN, "8")


def test_the_scheduler_of_the_policy_comes_with_enforce_and_goes_with_it(
    enforced: LoopHarness,
) -> None:
    policy = replace(enforced.loop.policy, backing_scheduler="bfq")
    enforced.loop.set_policy(policy)
    enforced.tick()
    assert enforced.knob(SCHEDULER) == "bfq"
    written = [action for action in enforced.kept.written if action.action.knob == SCHEDULER]
    enforced.tick()
    enforced.tick()
    assert [each for each in enforced.kept.written if each.action.knob == SCHEDULER] == written
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.settle()
    assert enforced.knobs() == enforced.before


def test_a_policy_without_a_scheduler_restores_it(enforced: LoopHarness) -> None:
    enforced.loop.set_policy(replace(enforced.loop.policy, backing_scheduler="bfq"))
    enforced.tick()
    enforced.loop.set_policy(replace(enforced.loop.policy, backing_scheduler=""))
    enforced.tick()
    assert enforced.knob(SCHEDULER) == "mq-deadline"


def test_a_scheduler_that_somebody_else_chooses_stays(enforced: LoopHarness) -> None:
    enforced.loop.set_policy(replace(enforced.loop.policy, backing_scheduler="bfq"))
    enforced.tick()
    enforced.fake.write(SCHEDULER_FILE, "[none] bfq")
    enforced.tick()
    assert SCHEDULER in enforced.loop.writer.manual
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knob(SCHEDULER) == "none"


def test_where_one_disk_refuses_the_scheduler_no_disk_gets_it(enforced: LoopHarness) -> None:
    disks = (device("vda"), device("vdb"))
    enforced.loop.writer.volume = enforced.volume = replace(enforced.volume, disks=disks)
    enforced.fake.remove("/sys/block/vdb/queue/scheduler")
    enforced.loop.set_policy(replace(enforced.loop.policy, backing_scheduler="bfq"))
    enforced.tick()
    assert enforced.knob(SCHEDULER) == "mq-deadline"
    assert SCHEDULER not in enforced.loop.writer.owned


def test_a_scheduler_that_somebody_sets_back_is_manual(enforced: LoopHarness) -> None:
    """A disk that is reset keeps its scheduler, so a person has chosen it."""
    enforced.loop.set_policy(replace(enforced.loop.policy, backing_scheduler="bfq"))
    enforced.tick()
    enforced.fake.write(SCHEDULER_FILE, "[mq-deadline] bfq none")
    enforced.tick()
    enforced.now_ms += 2000
    enforced.tick()
    assert (enforced.knob(SCHEDULER), enforced.loop.writer.manual) == ("mq-deadline", {SCHEDULER})
    assert SCHEDULER not in enforced.kept.open
    enforced.loop.release("ebbgated stops")
    enforced.settle()
    assert enforced.knobs() == enforced.before


def test_a_disk_that_is_plugged_in_again_gets_the_scheduler_again(enforced: LoopHarness) -> None:
    enforced.loop.set_policy(replace(enforced.loop.policy, backing_scheduler="bfq"))
    enforced.tick()
    enforced.plug_in_again("vda")
    enforced.fake.write(SCHEDULER_FILE, "[mq-deadline] bfq none")
    enforced.now_ms += 2000
    enforced.tick()
    assert (enforced.knob(SCHEDULER), enforced.loop.writer.manual) == ("bfq", set())


def test_a_scheduler_that_is_released_is_driven_again(enforced: LoopHarness) -> None:
    enforced.loop.set_policy(replace(enforced.loop.policy, backing_scheduler="bfq"))
    enforced.tick()
    enforced.fake.write(SCHEDULER_FILE, "[none] bfq")
    enforced.tick()
    assert enforced.loop.resume_control(SCHEDULER) == (SCHEDULER,)
    enforced.tick()
    assert enforced.knob(SCHEDULER) == "none", "a scheduler is changed once a second"
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.knob(SCHEDULER) == "bfq"


REST = Gate(GateKind.RESTING, 1 << 20)


@pytest.mark.parametrize(
    ("before", "gate", "recorded"),
    [
        (Gate(GateKind.PACED, 1 << 20), Gate(GateKind.PACED, 1 << 21), False),
        (Gate(GateKind.CLOSED, queue_depth=8), Gate(GateKind.CLOSED), False),
        (Gate(GateKind.CLOSED), Gate(GateKind.CLOSED), True),
        (Gate(GateKind.OPEN), REST, False),
        (REST, Gate(GateKind.OPEN), False),
        (REST, Gate(GateKind.CLOSED), True),
        (Gate(GateKind.CLOSED), REST, True),
    ],
)
def test_pace_rests_and_queues_are_adjusted_without_a_record(
    enforced: LoopHarness, before: Gate, gate: Gate, recorded: bool
) -> None:
    driver = enforced.loop.driver
    driver.applied.gate, driver.gate_since_ns = before, 0
    driver.gate(Ruling(gate, "idle_destage", "a test"), 1, reassert=True)
    enforced.settle()
    assert bool(driver.gate_since_ns) is recorded
