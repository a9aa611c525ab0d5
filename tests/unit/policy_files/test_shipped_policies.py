# SPDX-License-Identifier: GPL-2.0-only
"""The shipped policies are valid and do what they say; schema and reference are current."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, Required, get_origin, get_type_hints

import pytest

from ebbgate.knobs.catalog import BOUNDS, CUTOFF
from ebbgate.model.decision import GateKind
from ebbgate.model.frame import Frame
from ebbgate.model.power import DiskPower, PowerState
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import Policy, default_policy
from ebbgate.policy.engine import State, step
from ebbgate.policy.language import grammar
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.diagnostic import Diagnostics
from ebbgate.policy.language.document import ZERO, PolicyDocument
from ebbgate.policy.language.grammar import ENTRY, MATCH, OBJECTIVES, POLICY, RULE
from ebbgate.policy.language.link import link
from ebbgate.policy.language.object_schema import FieldSchema, ObjectSchema
from ebbgate.policy.language.params import STRATEGY_PARAMS
from ebbgate.policy.language.parse import parse
from ebbgate.policy.language.reference import blocks, schema_text
from ebbgate.policy.language.settings import LIMITS, SET
from ebbgate.policy.language.yaml_events import read_nodes
from ebbgate.policy.rule_signals import SIGNALS
from ebbgate.policy_files import reader
from ebbgate.units import GIB, MIB
from tests.builders import busy_frame, idle_frame
from tests.policy_texts import EXAMPLE, FOLDER, SHIPPED

README = (FOLDER / "README.md").read_text()
DOCUMENTS = {document.name: document for document in reader.shipped()}
NAMES = ("adaptive", "observe-only", "database", "vm-images", "backup-window", "nas-sleep")


def fields(record: ObjectSchema[Any]) -> Iterator[FieldSchema]:
    for field in record.fields:
        yield field
        if isinstance(field.value, ObjectSchema):
            yield from fields(field.value)


RECORDS_ALL: tuple[ObjectSchema[Any], ...] = (
    POLICY,
    MATCH,
    OBJECTIVES,
    RULE,
    ENTRY,
    SET,
    LIMITS,
    *STRATEGY_PARAMS.values(),
)
FIELDS = [field for record in RECORDS_ALL for field in fields(record)]


def compiled(name: str, kind: Kind = Kind.BCACHE) -> Policy:
    return compile_policy(DOCUMENTS[name], kind)


def gates(policy: Policy, *frames: Frame) -> list[GateKind | None]:
    """The gate after each frame."""
    state, found = State(), []
    for frame in frames:
        state, outcome = step(state, frame, policy, frame.at_ns)
        found.append(outcome.gate.kind if outcome.gate else None)
    return found


def level(
    at_s: float, dirty_bytes: int, busy: float = 0.0, power: PowerState = PowerState.UNKNOWN
) -> Frame:
    """A volume in use, with so much of 1 GiB dirty; `busy`, `power`: of the disk."""
    return busy_frame(
        round(at_s * 1000),
        dirty_bytes=dirty_bytes,
        dirty_ratio=dirty_bytes / GIB,
        backing_busy_foreground_ratio=busy,
        backing_power=DiskPower(power),
    )


def test_all_shipped_policies_exist() -> None:
    assert set(DOCUMENTS) == {*NAMES, "drain-now", "warm-hot"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_each_policy_is_valid_named_like_its_file_and_documented(path: Path) -> None:
    text = path.read_text()
    parsed = parse(text, str(path))
    assert parsed.problems == ()
    assert parsed.document is not None
    assert parsed.document.name == path.stem
    assert parsed.document.why
    assert re.search(r"^# For ", text, re.M)
    assert f"({path.name})" in README


@pytest.mark.parametrize("kind", Kind)
def test_adaptive_is_what_runs_without_configuration(kind: Kind) -> None:
    expected = default_policy(kind)
    assert compile_policy(DOCUMENTS["adaptive"], kind) == expected
    assert compile_policy(ZERO, kind) == expected


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("document", list(DOCUMENTS.values()), ids=lambda document: document.name)
def test_each_runs_on_each_kind_of_cache(kind: Kind, document: PolicyDocument) -> None:
    policy = compile_policy(document, kind)
    outcome = step(State(), idle_frame(), policy, 1)[1]
    assert outcome.explained().gate == outcome.gate


def test_observe_only_proposes_nothing() -> None:
    policy = compiled("observe-only")
    found = step(State(), idle_frame(), policy, 1)[1].explained()
    assert (found.proposals, found.gate, found.sequential_cutoff_bytes) == ((), None, None)


@pytest.mark.parametrize("kind", [Kind.BCACHE, Kind.DM_CACHE])
def test_drain_now_drains_under_load_and_then_leaves_the_kernel_alone(kind: Kind) -> None:
    wide = GateKind.OPEN if kind is Kind.BCACHE else GateKind.PACED
    frames = (level(1, 400 * MIB, 0.9), level(60, 8 * MIB, 0.9), level(120, 0), level(180, 0))
    assert gates(compiled("drain-now", kind), *frames) == [wide, wide, None, None]


def test_nas_sleep_holds_while_the_disk_is_idle() -> None:
    assert gates(
        compiled("nas-sleep", Kind.DM_CACHE), *(level(60 * n, 100 * MIB) for n in range(1, 5))
    )[2:] == [GateKind.HELD, GateKind.HELD]


def test_nas_sleep_writes_back_when_the_disk_is_in_use() -> None:
    policy = compiled("nas-sleep", Kind.DM_CACHE)
    held = [level(60 * n, 100 * MIB) for n in range(1, 5)]
    awake = level(300, 100 * MIB, busy=0.05)
    gap = idle_frame(302_000, dirty_bytes=100 * MIB, backing_busy_foreground_ratio=0.05)
    assert gates(policy, *held, awake, gap)[-2:] == [GateKind.PACED, GateKind.PACED]


def test_nas_sleep_bursts_at_the_bounds_of_level_and_age() -> None:
    policy = compiled("nas-sleep")
    full = [level(1, 200 * MIB), level(200, 320 * MIB), level(300, 20 * MIB), level(400, 5 * MIB)]
    assert gates(policy, *full)[1:] == [GateKind.OPEN, GateKind.OPEN, GateKind.HELD]
    old = [level(3600 * hour, 100 * MIB) for hour in range(1, 8)]
    assert gates(policy, *old)[-2:] == [GateKind.HELD, GateKind.OPEN]


def test_nas_sleep_writes_back_after_something_else_has_woken_the_disk() -> None:
    policy = compiled("nas-sleep")
    asleep = [level(60 * n, 100 * MIB, power=PowerState.STANDBY) for n in range(1, 5)]
    woken = [level(60 * n, 100 * MIB, power=PowerState.ACTIVE) for n in range(5, 9)]
    found = gates(policy, *asleep, *woken)
    assert found[:4] == [GateKind.HELD] * 4
    assert found[4] not in (GateKind.HELD, None)
    assert found[-1] is GateKind.HELD


def test_nas_sleep_goes_on_holding_a_little_data_after_the_disk_was_woken() -> None:
    asleep = [level(60 * n, MIB, power=PowerState.STANDBY) for n in range(1, 5)]
    woken = [level(60 * n, MIB, power=PowerState.ACTIVE) for n in range(5, 9)]
    assert set(gates(compiled("nas-sleep"), *asleep, *woken)) == {GateKind.HELD}


def test_the_schema_is_that_of_the_code() -> None:
    kept = (FOLDER / "schema.json").read_text()
    assert kept == schema_text(), "run: python -m ebbgate.policy.language.reference schema"
    assert json.loads(kept)["properties"].keys() == {field.name for field in POLICY.fields}


@pytest.mark.parametrize(("name", "block"), list(blocks()), ids=lambda value: str(value)[:20])
def test_the_reference_has_the_tables_of_the_code(name: str, block: str) -> None:
    assert block in README, f"{name}: run: python -m ebbgate.policy.language.reference"


@pytest.mark.parametrize("name", [*(field.name for field in FIELDS), *SIGNALS])
def test_every_key_and_signal_is_in_the_reference(name: str) -> None:
    assert re.search(rf"^\| `(\w+\.)?{name}` \|", README, re.M)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (POLICY, grammar.PolicyValues),
        (MATCH, grammar.MatchValues),
        (RULE, grammar.RuleValues),
        (ENTRY, grammar.EntryValues),
    ],
)
def test_type_of_what_is_read_has_the_keys_of_its_schema(
    schema: ObjectSchema[Any], values: Any
) -> None:
    hints = get_type_hints(values, include_extras=True)
    assert list(hints) == [field.name for field in schema.fields]
    marked = Required if not values.__total__ else NotRequired
    found = {name for name, hint in hints.items() if get_origin(hint) is marked}
    assert found == {f.name for f in schema.fields if f.required is (marked is Required)}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_example_is_valid(field: FieldSchema) -> None:
    findings = Diagnostics("example")
    node = read_nodes(field.example, findings)
    assert node is not None
    field.value.read(node, field.name, findings)
    assert findings.problems == []


def test_the_example_of_the_reference_is_valid() -> None:
    parsed = parse(EXAMPLE, "nas-evening.yaml")
    assert parsed.document is not None
    assert link([parsed.document], DOCUMENTS.values()).problems == ()


def test_a_cutoff_that_may_be_written_is_one_that_would_be() -> None:
    (quantity,) = {f.value for f in SET.fields if f.name == CUTOFF}
    assert (quantity.low, quantity.high) == (BOUNDS[CUTOFF].low, BOUNDS[CUTOFF].high)  # type: ignore[attr-defined]
