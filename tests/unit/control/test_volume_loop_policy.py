# SPDX-License-Identifier: GPL-2.0-only
"""A volume under another policy than the default: swapped while it runs, and named right."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.model.decision import GateKind
from ebbgate.model.volume import Kind, Mode
from ebbgate.policy.defaults import Policy
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.parse import parse
from ebbgate.policy_files import reader
from ebbgate.units import MIB
from tests.volume_loop_fixture import LoopHarness

CUTOFF = """
version: 1
name: cut
why: A test.
strategies: []
rules:
  - {name: low, why: Nothing long., when: {dirty_data: "> 0"}, set: {sequential_cutoff: 1MiB}}
"""


def shipped(name: str) -> Policy:
    (document,) = (each for each in reader.shipped() if each.name == name)
    return compile_policy(document, Kind.BCACHE)


def policy(text: str) -> Policy:
    document = parse(text, "test.yaml").document
    assert document is not None
    return compile_policy(document, Kind.BCACHE)


@pytest.fixture
def harness(tmp_path: Path) -> LoopHarness:
    return LoopHarness(tmp_path, Mode.ENFORCE)


def test_observe_only_puts_every_knob_back(harness: LoopHarness) -> None:
    harness.tick()
    assert harness.gate() is GateKind.CLOSED
    harness.loop.set_policy(shipped("observe-only"))
    harness.tick()
    harness.tick()
    assert harness.knobs() == harness.before
    harness.tick()
    assert harness.kept.document["now"] == "Observing: changes nothing (policy observe-only)"
    assert harness.kept.document["policy"] == "observe-only"


def test_a_rule_that_opens_the_gate_is_named_wherever_the_gate_is(harness: LoopHarness) -> None:
    harness.loop.set_policy(shipped("drain-now"))
    for _ in range(5):
        harness.tick(dirty_bytes=200 * MIB)
    assert harness.knob("writeback_percent") == "0"
    document = harness.kept.document
    assert document["now"].startswith("rule drain: ")
    assert document["gate"]["reason"] == document["now"].removeprefix("rule drain: ")
    opened = [o.action for o in harness.kept.written if o.action.knob == "writeback_percent"]
    assert opened[-1].strategy == "rule drain"
    assert not harness.loop.urgent, "no request that comes back closes it"


def test_the_gate_of_a_rule_ends_with_it(harness: LoopHarness) -> None:
    harness.loop.set_policy(shipped("drain-now"))
    harness.tick(dirty_bytes=200 * MIB)
    for _ in range(30):
        harness.tick(dirty_bytes=0)
    assert harness.knobs() == harness.before


def test_a_cutoff_of_a_rule_is_written_in_its_name(harness: LoopHarness) -> None:
    harness.loop.set_policy(policy(CUTOFF))
    harness.tick(dirty_bytes=200 * MIB)
    harness.tick(dirty_bytes=200 * MIB)
    (written,) = (o.action for o in harness.kept.written if o.action.knob == "sequential_cutoff")
    assert (written.new, written.strategy) == (str(MIB), "rule low")


def test_the_same_policy_again_is_no_change(harness: LoopHarness) -> None:
    harness.tick()
    count = len(harness.kept.decisions)
    harness.loop.set_policy(Policy())
    harness.tick()
    assert len(harness.kept.decisions) == count
