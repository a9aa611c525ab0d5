# SPDX-License-Identifier: GPL-2.0-only
"""What is due when a hold or an override ends, and is refused once, is written later."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.model.decision import JournalEntry
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.probes.volume_state import read_state
from ebbgate.units import MIB
from tests.unit.control.test_volume_loop_dm import NAME, DmLoopHarness
from tests.volume_loop_fixture import DEADLINE_S

REFUSED_AGAIN_MS = 61_000
SPLIT, SCHEDULER = "max_sectors_kb", "scheduler"


class HoldHarness(DmLoopHarness):
    """A dm-cache volume with a stream that competes with random writes, or without one."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._streamed = 0
        self.refused = 0
        for _ in range(2):
            self.tick()

    def stream(self, ticks: int = 2) -> None:
        for _ in range(ticks):
            self._streamed += 1
            blocks = [0, 0, 0, 8 * self._streamed * MIB, *[0] * 10, 64 * self._streamed * MIB]
            self.tick(runs={"read": [], "write": blocks})

    def want(self, knob: str, wanted: bool) -> None:
        """Let requests be split, or the scheduler be bfq, for some seconds at least; or neither."""
        if knob == SCHEDULER:
            scheduler = "bfq" if wanted else ""
            self.loop.set_policy(replace(self.loop.policy, backing_scheduler=scheduler))
        # As often as a stream needs to be over.
        for _ in range(20):
            if knob == SPLIT and wanted:
                self.stream(1)
            else:
                self.tick()

    def is_written(self, knob: str) -> bool:
        """Return whether requests are split, or the scheduler is bfq."""
        return self.read(knob) == ("32" if knob == SPLIT else "bfq")

    def read(self, knob: str) -> str:
        name, _, disk = knob.partition(":")
        device = "dm-0" if knob == SPLIT else disk or "vda"
        return self.fake.read(f"/sys/block/{device}/queue/{name}")

    def kernel_refuses(self, knob: str) -> None:
        """Have the kernel refuse the next write of a knob."""

        def refuse() -> None:
            del self.sysfs.before[knob]
            self.refused += 1
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

        self.sysfs.before[knob] = refuse

    def journal_refuses(self, knob: str) -> None:
        """Have the journal refuse the next original of a knob."""
        put = self.kept.put

        def refuse(entry: JournalEntry) -> JournalEntry:
            if entry.knob.startswith(knob):
                self.kept.put = put  # type: ignore[method-assign]
                self.refused += 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return put(entry)

        self.kept.put = refuse  # type: ignore[method-assign]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[HoldHarness]:
    made = HoldHarness(tmp_path)
    yield made
    assert made.loop.worker.stop(DEADLINE_S)


def released(harness: HoldHarness) -> None:
    harness.loop.freeze(False)


def enforced_again(harness: HoldHarness) -> None:
    harness.loop.set_mode(Mode.ENFORCE, "a person")


each_end = pytest.mark.parametrize("end", [released, enforced_again])


@each_end
@pytest.mark.parametrize("knob", [SPLIT, SCHEDULER])
def test_what_is_over_when_a_hold_ends_is_given_back_though_it_was_refused_once(
    harness: HoldHarness, knob: str, end: Callable[[HoldHarness], None]
) -> None:
    harness.want(knob, True)
    assert harness.is_written(knob)
    harness.loop.freeze(True)
    harness.want(knob, False)
    assert harness.is_written(knob), "a hold keeps every knob"
    harness.kernel_refuses(knob)
    end(harness)
    harness.tick()
    assert (harness.refused, harness.is_written(knob)) == (1, True)
    harness.now_ms += REFUSED_AGAIN_MS
    for _ in range(2):
        harness.tick()
    assert not harness.is_written(knob)
    assert not any(each.startswith(knob) for each in harness.kept.open)


@each_end
@pytest.mark.parametrize("knob", [SPLIT, SCHEDULER])
def test_what_became_due_in_a_hold_is_written_though_the_journal_refused_it_once(
    harness: HoldHarness, knob: str, end: Callable[[HoldHarness], None]
) -> None:
    harness.loop.freeze(True)
    harness.want(knob, True)
    assert not harness.is_written(knob), "a hold keeps every knob"
    harness.journal_refuses(knob)
    end(harness)
    harness.want(knob, True)
    assert (harness.refused, harness.is_written(knob)) == (1, False)
    until_ms = harness.now_ms + REFUSED_AGAIN_MS
    while harness.now_ms < until_ms:
        # Without a pause, after which it would be wanted anew.
        harness.want(knob, True)
    assert harness.is_written(knob)


@each_end
def test_split_requests_that_the_kernel_refuses_after_a_hold_are_split_at_the_next_look(
    harness: HoldHarness, end: Callable[[HoldHarness], None]
) -> None:
    harness.loop.freeze(True)
    harness.want(SPLIT, True)
    harness.kernel_refuses(SPLIT)
    end(harness)
    harness.stream(1)
    assert (harness.refused, harness.is_written(SPLIT)) == (1, False)
    harness.stream(1)
    assert harness.is_written(SPLIT)


def test_requests_that_somebody_made_longer_are_split_again_when_enforce_ends_a_hold(
    harness: HoldHarness,
) -> None:
    harness.want(SPLIT, True)
    harness.fake.write("/sys/block/dm-0/queue/max_sectors_kb", "640")
    harness.stream(1)
    assert harness.loop.writer.manual == {SPLIT}
    harness.loop.freeze(True)
    harness.stream(1)
    enforced_again(harness)
    harness.stream(2)
    assert (harness.is_written(SPLIT), harness.loop.writer.manual) == (True, set())


@pytest.mark.parametrize(("knob", "value"), [(SPLIT, "640"), ("nr_requests:vda", "128")])
def test_what_is_driven_again_after_an_override_is_not_released_for_a_release_that_failed(
    harness: HoldHarness, knob: str, value: str
) -> None:
    harness.want(SPLIT, True)
    driven = harness.read(knob)
    assert driven == ("32" if knob == SPLIT else "768")
    wanted = Override(OverrideKind.SET, NAME, "jo", 1, None, knob, value, 1)
    harness.loop.set_overrides((ActiveOverride(wanted, None),))
    harness.stream(8)
    assert harness.read(knob) == value
    harness.kernel_refuses(knob.partition(":")[0])
    harness.loop.set_overrides(())
    harness.settle()
    assert (harness.refused, harness.read(knob)) == (1, value)
    # It is driven again before the release is repeated.
    seen = read_state(harness.sysfs, harness.volume, harness.now_ns())
    harness.loop.on_tick(seen, knobs_settled=False)
    harness.settle()
    assert harness.read(knob) == driven
    for _ in range(4):
        harness.stream(1)
        assert harness.read(knob) == driven
