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
from tests.volume_loop_fixture import LoopBench

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
def bench(tmp_path: Path) -> LoopBench:
    return LoopBench(tmp_path, Mode.ENFORCE)


def test_observe_only_puts_every_knob_back(bench: LoopBench) -> None:
    bench.tick()
    assert bench.gate() is GateKind.CLOSED
    bench.loop.set_policy(shipped("observe-only"))
    bench.tick()
    bench.tick()
    assert bench.knobs() == bench.before
    bench.tick()
    assert bench.kept.document["now"] == "Observing: changes nothing (policy observe-only)"
    assert bench.kept.document["policy"] == "observe-only"


def test_a_rule_that_opens_the_gate_is_named_wherever_the_gate_is(bench: LoopBench) -> None:
    bench.loop.set_policy(shipped("drain-now"))
    for _ in range(5):
        bench.tick(dirty_bytes=200 * MIB)
    assert bench.knob("writeback_percent") == "0"
    document = bench.kept.document
    assert document["now"].startswith("rule drain: ")
    assert document["gate"]["reason"] == document["now"].removeprefix("rule drain: ")
    opened = [o.action for o in bench.kept.written if o.action.knob == "writeback_percent"]
    assert opened[-1].strategy == "rule drain"
    assert not bench.loop.urgent, "no request that comes back closes it"


def test_the_gate_of_a_rule_ends_with_it(bench: LoopBench) -> None:
    bench.loop.set_policy(shipped("drain-now"))
    bench.tick(dirty_bytes=200 * MIB)
    for _ in range(30):
        bench.tick(dirty_bytes=0)
    assert bench.knobs() == bench.before


def test_a_cutoff_of_a_rule_is_written_in_its_name(bench: LoopBench) -> None:
    bench.loop.set_policy(policy(CUTOFF))
    bench.tick(dirty_bytes=200 * MIB)
    bench.tick(dirty_bytes=200 * MIB)
    (written,) = (o.action for o in bench.kept.written if o.action.knob == "sequential_cutoff")
    assert (written.new, written.strategy) == (str(MIB), "rule low")


def test_the_same_policy_again_is_no_change(bench: LoopBench) -> None:
    bench.tick()
    count = len(bench.kept.decisions)
    bench.loop.set_policy(Policy())
    bench.tick()
    assert len(bench.kept.decisions) == count
