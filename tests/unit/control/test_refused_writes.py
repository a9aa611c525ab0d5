# SPDX-License-Identifier: GPL-2.0-only
"""What the journal refused, as on a full disk, is tried again after a minute."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ebbgate.model.decision import Gate, GateKind, JournalEntry, Proposal
from ebbgate.model.volume import Mode
from ebbgate.policy.rules import Check, Rule
from ebbgate.units import GIB, MIB
from tests.volume_loop_fixture import LoopHarness

CHECKS = ((Check("dirty_data", ">=", 0),),)
RULES = {
    "sequential_cutoff": Rule(
        "r",
        CHECKS,
        Proposal("rule r", "on: x", sequential_cutoff_bytes=MIB),
        ("sequential_cutoff",),
    ),
    "writeback_running": Rule(
        "r", CHECKS, Proposal("rule r", "on: x", gate=Gate(GateKind.HELD)), ("destage_rate",)
    ),
}


@pytest.mark.parametrize(
    ("knob", "wanted"), [("sequential_cutoff", "1048576"), ("writeback_running", "0")]
)
def test_what_the_journal_refused_at_first_is_written_after_a_minute(
    make_loop: Callable[[Mode], LoopHarness],
    monkeypatch: pytest.MonkeyPatch,
    knob: str,
    wanted: str,
) -> None:
    def put(_: JournalEntry) -> JournalEntry:
        raise OSError(errno.ENOSPC, "No space left on device")

    harness = make_loop(Mode.ENFORCE)
    harness.loop.set_policy(replace(harness.policy, rules=(RULES[knob],)))
    seen: dict[str, Any] = {"in_use_ratio": 0.1, "dirty_bytes": 10 * MIB, "cache_bytes": 10 * GIB}
    with monkeypatch.context() as broken:
        broken.setattr(harness.kept, "put", put)
        for _ in range(8):
            harness.tick(**seen)
    before = harness.before[knob]
    assert harness.knob(knob) == before
    shown = harness.kept.document["gate"]
    assert shown["kind"] == "released"
    assert shown["reason"].startswith("not in force, since a write was refused; it is tried again.")
    harness.now_ms += 1000
    harness.tick(**seen)
    summary = harness.kept.document["now"]
    assert summary.startswith("Not in force, since a write was refused: ")
    harness.tick(**seen)
    assert harness.knob(knob) == before, "the journal may take 10 s to refuse"
    for _ in range(240):
        harness.tick(**seen)
    assert harness.knob(knob) == wanted
    assert not harness.kept.document["gate"]["reason"].startswith("not in force")
    assert not harness.kept.document["now"].startswith("Not in force")


def test_a_knob_that_this_kernel_lacks_is_not_tried_again(enforced: LoopHarness) -> None:
    lacking = f"/sys/fs/bcache/{enforced.volume.set_uuid}/internal/idle_max_writeback_rate"
    enforced.fake.sysfs.locate(lacking).unlink()
    enforced.loop.set_mode(Mode.ADVISE, "a person")
    enforced.settle()
    enforced.loop.set_mode(Mode.ENFORCE, "a person")
    for _ in range(4):
        enforced.tick()
    assert enforced.gate() is GateKind.CLOSED
    assert "idle_max_writeback_rate" in enforced.loop.writer.lacking
    assert not enforced.loop.driver.gate_is_due
    enforced.now_ms += 61_000
    assert not enforced.loop.driver.gate_is_due
