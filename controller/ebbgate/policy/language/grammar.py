# SPDX-License-Identifier: GPL-2.0-only
"""The whole policy language as one table of schemas. Pure.

Every key of a policy file is defined here and nowhere else; policies/schema.json and the tables of
policies/README.md are printed from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NotRequired, Required, TypedDict

from ebbgate.model.volume import Kind
from ebbgate.policy.language.condition import When
from ebbgate.policy.language.document import DAYS, StrategyUse
from ebbgate.policy.language.object_schema import Faults, FieldSchema, ObjectSchema
from ebbgate.policy.language.settings import LIMITS, SET
from ebbgate.policy.language.strategy_schema import StrategySchema, WindowSchema
from ebbgate.policy.language.value_schemas import (
    NAME_SCHEMA,
    ChoiceSchema,
    ConstSchema,
    ListSchema,
    Located,
    Quantity,
    QuantitySchema,
    ReferenceSchema,
    TextSchema,
    VolumeSchema,
)
from ebbgate.policy.quantity import SignalUnit
from ebbgate.policy.rules import Groups
from ebbgate.units import DAY_NS, MINUTE_NS, NS_PER_S

VERSION: Final = 1
RULES_MAX: Final = 50


class MatchValues(TypedDict, total=False):
    """What is read by MATCH."""

    volume: tuple[str, ...]
    kind: tuple[str, ...]


RuleValues = TypedDict(
    "RuleValues",
    {
        "name": str,
        "why": str,
        "when": Groups,
        "for": NotRequired[float],
        "set": Mapping[str, Quantity],
        "until": NotRequired[Groups],
        "cooldown": NotRequired[float],
    },
)
"""What is read by RULE."""


class EntryValues(TypedDict):
    """What is read by ENTRY."""

    name: str
    at: tuple[int, int]
    days: NotRequired[tuple[str, ...]]
    use: Located


class PolicyValues(TypedDict, total=False):
    """What is read by POLICY."""

    version: Required[int]
    name: Required[str]
    why: str
    match: MatchValues
    include: tuple[Located, ...]
    limits: Mapping[str, Mapping[str, float]]
    objectives: Mapping[str, float]
    strategies: tuple[StrategyUse, ...]
    backing_scheduler: str
    rules: tuple[RuleValues, ...]
    schedule: tuple[EntryValues, ...]


def _check_policy(values: PolicyValues) -> Faults:
    yield from _twice("strategies", "strategy", (use.name for use in values.get("strategies", ())))
    yield from _twice("rules", "rule", (rule["name"] for rule in values.get("rules", ())))
    yield from _twice("schedule", "entry", (entry["name"] for entry in values.get("schedule", ())))


def _twice(key: str, what: str, names: Iterable[str]) -> Faults:
    for name, count in Counter(names).items():
        if count > 1:
            yield key, f"duplicate {what} {name!r}", "remove one of them"


def _check_rule(values: RuleValues) -> Faults:
    if "destage_rate" in values["set"] and "destage_depth" in values["set"]:
        yield "set", "destage_rate and destage_depth both control write-back", "remove one"


def _seconds(high_ns: int) -> QuantitySchema:
    return QuantitySchema(SignalUnit.DURATION, 0, high_ns)


_WHY: Final = TextSchema("a sentence, at most 500 characters")
_P99: Final = QuantitySchema(SignalUnit.DURATION, 10_000, MINUTE_NS)

MATCH: Final[ObjectSchema[MatchValues]] = ObjectSchema(
    "match",
    (
        FieldSchema(
            "volume",
            ListSchema(VolumeSchema(), single=True, least=1),
            "Names or patterns (`*`, `?`, `[...]`) of volumes, also of LVM (`vg/data`), and uuids."
            " A boot may give a name of bcache (`bcache0`) to another volume; its uuid stays.",
            '["bcache*", vg/data]',
            default="every volume",
        ),
        FieldSchema(
            "kind",
            ListSchema(ChoiceSchema(tuple(str(kind) for kind in Kind)), single=True, least=1),
            "Kinds of cache.",
            "bcache",
            default="every kind",
        ),
    ),
)
OBJECTIVES: Final[ObjectSchema[Mapping[str, float]]] = ObjectSchema(
    "objectives",
    (
        FieldSchema(
            "read_latency_p99",
            _P99,
            "While the signal read_latency_p99 is above this, idle_destage does not write back"
            " under light load; it starts again at half of it.",
            "30ms",
            default="no bound",
        ),
        FieldSchema(
            "write_latency_p99", _P99, "The same for write_latency_p99.", "10ms", default="no bound"
        ),
        FieldSchema(
            "dirty_age_max",
            QuantitySchema(SignalUnit.DURATION, NS_PER_S, 30 * DAY_NS),
            "Dirty data that has waited this long for a gap is written back under load.",
            "2h",
            default="10min",
        ),
    ),
)
RULE: Final = ObjectSchema(
    "a rule",
    (
        FieldSchema(
            "name", NAME_SCHEMA, "Shown wherever the rule decides.", "cliff-guard", required=True
        ),
        FieldSchema(
            "why",
            _WHY,
            "A sentence that is shown with each decision of the rule.",
            "Drain before the kernel stops caching writes.",
            required=True,
        ),
        FieldSchema(
            "when",
            When(),
            "Turns the rule on: comparisons of signals, `all:` or `any:` with a list of them, or"
            " `any:` of `all:`.",
            '{time_to_full: "< 60s", dirty_ratio: "> 40%"}',
            required=True,
        ),
        FieldSchema(
            "for",
            _seconds(DAY_NS),
            "How long `when` must be met without interruption.",
            "3s",
            default="0",
        ),
        FieldSchema(
            "set", SET, "What the rule sets while it is on.", "{destage_rate: max}", required=True
        ),
        FieldSchema(
            "until",
            When(),
            "Turns the rule off; a value other than that of `when` gives hysteresis. The rule also"
            " turns off when a signal in it is unknown.",
            '{dirty_ratio: "< 25%"}',
            default="when `when` is no longer met",
        ),
        FieldSchema(
            "cooldown",
            _seconds(DAY_NS),
            "How long the rule stays off after it was turned off.",
            "30s",
            default="0",
        ),
    ),
    _check_rule,
)
ENTRY: Final[ObjectSchema[EntryValues]] = ObjectSchema(
    "an entry of the schedule",
    (
        FieldSchema(
            "name", NAME_SCHEMA, "Shown while the entry is active.", "backup", required=True
        ),
        FieldSchema(
            "at",
            WindowSchema(),
            "Start and end in local time; an end before the start is on the next day.",
            '"01:00-05:00"',
            required=True,
        ),
        FieldSchema(
            "days",
            ListSchema(ChoiceSchema(DAYS), single=True, least=1, most=7),
            "The days on which it starts.",
            "[sat, sun]",
            default="every day",
        ),
        FieldSchema(
            "use",
            ReferenceSchema(),
            "The policy that applies on top of this one then: a shipped one, or one of the same"
            " folder.",
            "backup-window",
            required=True,
        ),
    ),
)
POLICY: Final = ObjectSchema(
    "a policy",
    (
        FieldSchema(
            "version", ConstSchema(VERSION), "Version of the policy language.", "1", required=True
        ),
        FieldSchema(
            "name",
            NAME_SCHEMA,
            "Name of the policy, unique in its folder.",
            "nas-evening",
            required=True,
        ),
        FieldSchema(
            "why", _WHY, "A sentence on the purpose of the policy.", "Let the disks sleep."
        ),
        FieldSchema(
            "match",
            MATCH,
            "Which volumes it is for; the first file that matches a volume is its policy.",
            '{volume: "bcache*"}',
            default="every volume",
        ),
        FieldSchema(
            "include",
            ListSchema(ReferenceSchema(), single=True, least=1, most=10),
            "Shipped policies whose limits, objectives, strategies and rules also apply, unless"
            " this file has its own.",
            "[database]",
        ),
        FieldSchema(
            "limits",
            LIMITS,
            "Hard limits that no strategy or rule exceeds.",
            "{sequential_cutoff: {min: 256KiB, max: 64MiB}}",
        ),
        FieldSchema(
            "objectives",
            OBJECTIVES,
            "Latency and age that ebbgate aims at.",
            "{read_latency_p99: 30ms}",
        ),
        FieldSchema(
            "strategies",
            ListSchema(StrategySchema(), most=10),
            "The strategies that are on, each with its parameters; `[]`: none.",
            "[idle_destage: {wait: 300ms}]",
            default="`idle_destage` and `stream_bypass`, as without a policy",
        ),
        FieldSchema(
            "backing_scheduler",
            ChoiceSchema(("bfq",)),
            "I/O scheduler of the disks below the volume while it is in `enforce`. With bfq and a"
            " SCSI or SATA disk, write-back in gaps needs no other limit. What you have set in"
            " `queue/iosched` of a disk comes back with its own scheduler; bfq has the kernel's"
            " defaults.",
            "bfq",
            default="the disks' own",
        ),
        FieldSchema(
            "rules",
            ListSchema(RULE, most=RULES_MAX),
            "Rules take precedence over strategies; for each setting the first rule wins.",
            '[{name: a, why: b, when: {idle: "yes"}, set: {destage_rate: max}}]',
        ),
        FieldSchema(
            "schedule",
            ListSchema(ENTRY, most=20),
            "Other policies at certain times of the day; the first entry that matches applies.",
            '[{name: a, at: "01:00-05:00", use: backup-window}]',
        ),
    ),
    _check_policy,
)
