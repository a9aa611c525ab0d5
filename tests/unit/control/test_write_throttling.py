# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a dm-cache volume: the kernel's own throttling of writes to its disks."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.probes.topology import find
from tests.fake_sysfs import failing
from tests.unit.control.test_volume_loop_dm import DmLoopHarness
from tests.volume_loop_fixture import DEADLINE_S, LoopHarness

KNOB = "wbt_lat_usec:vda"
QUEUE = "/sys/block/vda/queue"
THROTTLING, SCHEDULER = f"{QUEUE}/wbt_lat_usec", f"{QUEUE}/scheduler"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[DmLoopHarness]:
    made = DmLoopHarness(tmp_path)
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def written(harness: LoopHarness) -> list[str]:
    return [value for knob, value in harness.sysfs.log if knob == "wbt_lat_usec"]


def with_throttling(harness: DmLoopHarness, lat_usec: int | None) -> None:
    destage = harness.policy.destage
    assert destage is not None
    wanted = replace(destage, wbt_lat_usec=lat_usec)
    harness.loop.set_policy(replace(harness.policy, destage=wanted))


def test_without_such_a_policy_it_is_the_kernels(harness: DmLoopHarness) -> None:
    harness.tick()
    assert (written(harness), KNOB in harness.kept.open) == ([], False)


def test_enforce_turns_it_off_and_advise_on_again(harness: DmLoopHarness) -> None:
    with_throttling(harness, 0)
    harness.tick()
    assert harness.fake.read(THROTTLING) == "0"
    assert KNOB in harness.kept.open
    harness.loop.set_mode(Mode.ADVISE, "asked for")
    harness.settle()
    assert harness.fake.read(THROTTLING) == "75000"
    assert harness.kept.open == set()


def test_where_it_is_off_nothing_is_written(harness: DmLoopHarness) -> None:
    with_throttling(harness, 0)
    harness.fake.write(THROTTLING, "0")
    harness.tick()
    assert written(harness) == []
    assert KNOB not in harness.kept.open


def test_a_kernel_without_it_has_no_such_knob(harness: DmLoopHarness) -> None:
    with_throttling(harness, 0)
    harness.fake.remove(THROTTLING)
    harness.loop.writer.volume = harness.volume = find(harness.sysfs, "vg/data")
    harness.tick()
    assert KNOB not in harness.kept.open
    assert not [each for each in harness.kept.written if each.action.knob == KNOB]


def test_a_policy_may_leave_it_to_the_kernel_or_choose_another_time(
    harness: DmLoopHarness,
) -> None:
    with_throttling(harness, 0)
    harness.tick()
    with_throttling(harness, 200_000)
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(THROTTLING) == "200000"
    with_throttling(harness, None)
    harness.tick()
    assert harness.fake.read(THROTTLING) == "75000"
    assert KNOB not in harness.kept.open


@pytest.mark.parametrize("shown", ["0", "75000"], ids=["6.12", "6.1"])
def test_with_bfq_it_is_left_alone_and_turned_off_after_it(
    harness: DmLoopHarness, shown: str
) -> None:
    """The kernel turns it off with bfq, and on again with another scheduler."""
    harness.fake.write(SCHEDULER, "[mq-deadline] bfq none")
    harness.sysfs.after["scheduler"] = lambda: harness.fake.write(
        THROTTLING, shown if harness.fake.read(SCHEDULER) == "bfq" else "75000"
    )
    with_throttling(harness, 0)
    policy = harness.loop.policy
    harness.loop.set_policy(replace(policy, backing_scheduler="bfq"))
    harness.tick()
    assert (harness.fake.read(THROTTLING), written(harness)) == (shown, [])
    harness.loop.set_policy(policy)
    harness.now_ms += 1000
    harness.tick()
    assert (harness.fake.read(THROTTLING), written(harness)) == ("0", ["0"])
    harness.release("ebbgated stops")
    assert harness.fake.read(THROTTLING) == "75000"


def test_it_stays_off_under_a_scheduler_that_the_policy_sets_later(harness: DmLoopHarness) -> None:
    """The kernel turns it off only where nobody has written it."""
    harness.fake.write(SCHEDULER, "[mq-deadline] bfq none")
    with_throttling(harness, 0)
    harness.tick()
    harness.loop.set_policy(replace(harness.loop.policy, backing_scheduler="bfq"))
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(SCHEDULER) == "bfq"
    assert harness.fake.read(THROTTLING) == "0"


def test_what_a_person_asks_for_stays_until_that_ends(harness: DmLoopHarness) -> None:
    with_throttling(harness, 0)
    harness.tick()
    wanted = Override(OverrideKind.SET, "vg-data", "jo", 1, None, KNOB, "50000", 1)
    harness.loop.set_overrides((ActiveOverride(wanted, None),))
    harness.now_ms += 1000
    harness.tick()
    assert harness.fake.read(THROTTLING) == "50000"
    harness.loop.set_overrides(())
    for _ in range(2):
        harness.now_ms += 1000
        harness.tick()
    assert harness.fake.read(THROTTLING) == "0"


def test_what_somebody_else_sets_stays(harness: DmLoopHarness) -> None:
    with_throttling(harness, 0)
    harness.tick()
    harness.fake.write(THROTTLING, "10000")
    harness.tick()
    harness.release("ebbgated stops")
    assert harness.fake.read(THROTTLING) == "10000"


def test_what_the_kernel_refuses_is_tried_again_each_minute(harness: DmLoopHarness) -> None:
    with_throttling(harness, 0)
    harness.sysfs.before["wbt_lat_usec"] = failing(errno.EINVAL)
    harness.tick()
    del harness.sysfs.before["wbt_lat_usec"]
    harness.now_ms += 30_000
    harness.tick()
    assert harness.fake.read(THROTTLING) == "75000"
    harness.now_ms += 31_000
    harness.tick()
    assert harness.fake.read(THROTTLING) == "0"
