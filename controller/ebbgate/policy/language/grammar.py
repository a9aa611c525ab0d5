# SPDX-License-Identifier: GPL-2.0-only
"""The whole language as one table of shapes: what is read, checked, completed and documented. Pure.

Every key of a policy file is here and nowhere else; policies/schema.json and the tables of
policies/README.md are printed from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ebbgate.model.volume import Kind
from ebbgate.policy.language.condition import When
from ebbgate.policy.language.document import DAYS, StrategyUse
from ebbgate.policy.language.record import FieldSchema, ObjectSchema
from ebbgate.policy.language.settings import LIMITS, SET
from ebbgate.policy.language.shapes import (
    NAME,
    NAME_WANTED,
    ChoiceSchema,
    ConstSchema,
    ListSchema,
    QuantitySchema,
    TextSchema,
    Values,
)
from ebbgate.policy.language.special import StrategySchema, WindowSchema
from ebbgate.policy.quantity import SignalUnit
from ebbgate.units import NS_PER_S

VERSION: Final = 1
RULES_MAX: Final = 50
_HOUR_NS: Final = 3600 * NS_PER_S


def _unique(key: str, what: str) -> Any:
    """A check that no name is there twice in a list of records."""

    def check(values: Values) -> Iterator[tuple[str, str, str]]:
        names = [_name(each) for each in values.get(key) or ()]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield key, f"{what} {name!r} is there twice", "each once"

    return check


def _name(each: Any) -> str:
    return each.name if isinstance(each, StrategyUse) else each["name"]


def _check_policy(values: Values) -> Iterator[tuple[str, str, str]]:
    yield from _unique("strategies", "the strategy")(values)
    yield from _unique("rules", "the rule")(values)
    yield from _unique("schedule", "the entry")(values)


def _check_rule(values: Values) -> Iterator[tuple[str, str, str]]:
    if "destage_rate" in values["set"] and "destage_depth" in values["set"]:
        yield "set", "destage_rate and destage_depth both set the gate", "set one of them"


def _seconds(high_ns: int) -> QuantitySchema:
    return QuantitySchema(SignalUnit.DURATION, 0, high_ns)


_NAME: Final = TextSchema(NAME_WANTED, NAME)
_REFERENCE: Final = TextSchema(NAME_WANTED, NAME, located=True)
_WHY: Final = TextSchema("a sentence, at most 500 characters")
_P99: Final = QuantitySchema(SignalUnit.DURATION, 10_000, 60 * NS_PER_S)

MATCH: Final = ObjectSchema(
    "match",
    (
        FieldSchema(
            "volume",
            ListSchema(TextSchema("a name or a pattern", r"[^\s]{1,200}"), single=True, least=1),
            "Names of volumes, with `*`, `?` and `[...]`; the names of LVM (`vg/data`) count, too.",
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
OBJECTIVES: Final = ObjectSchema(
    "objectives",
    (
        FieldSchema(
            "read_latency_p99",
            _P99,
            "While the signal read_latency_p99 is above this, idle_destage drains nothing beside a"
            " light load; it begins again at half of it.",
            "30ms",
            default="no bound",
        ),
        FieldSchema(
            "write_latency_p99",
            _P99,
            "The same for write_latency_p99.",
            "10ms",
            default="no bound",
        ),
        FieldSchema(
            "dirty_age_max",
            QuantitySchema(SignalUnit.DURATION, NS_PER_S, 30 * 24 * _HOUR_NS),
            "When dirty data has waited for a gap this long, idle_destage drains it beside the"
            " load.",
            "2h",
            default="10min",
        ),
    ),
)
RULE: Final = ObjectSchema(
    "a rule",
    (
        FieldSchema(
            "name", _NAME, "Shown wherever the rule decides.", "cliff-guard", required=True
        ),
        FieldSchema(
            "why",
            _WHY,
            "One sentence, shown with each decision of the rule.",
            "Drain before the kernel stops caching writes.",
            required=True,
        ),
        FieldSchema(
            "when",
            When(),
            "When it comes on: a comparison of signals, `all:` or `any:` with a list of these, or"
            " `any:` of `all:`.",
            '{time_to_full: "< 60s", dirty_ratio: "> 40%"}',
            required=True,
        ),
        FieldSchema(
            "for",
            _seconds(24 * _HOUR_NS),
            "How long that must have held without a break.",
            "3s",
            default="0",
        ),
        FieldSchema(
            "set", SET, "What it sets while it is on.", "{destage_rate: max}", required=True
        ),
        FieldSchema(
            "until",
            When(),
            "When it goes off: a condition that is another one than `when` is its hysteresis. It"
            " goes off, too, when that is unknown.",
            '{dirty_ratio: "< 25%"}',
            default="when `when` no longer holds",
        ),
        FieldSchema(
            "cooldown",
            _seconds(24 * _HOUR_NS),
            "How long it stays off after it went off.",
            "30s",
            default="0",
        ),
    ),
    _check_rule,
)
ENTRY: Final = ObjectSchema(
    "an entry of the schedule",
    (
        FieldSchema("name", _NAME, "Shown while it is in force.", "backup", required=True),
        FieldSchema(
            "at",
            WindowSchema(),
            "From and to in local time; over midnight where the end is the earlier one.",
            '"01:00-05:00"',
            required=True,
        ),
        FieldSchema(
            "days",
            ListSchema(ChoiceSchema(DAYS), single=True, least=1, most=7),
            "The days on which it begins.",
            "[sat, sun]",
            default="every day",
        ),
        FieldSchema(
            "use",
            _REFERENCE,
            "The policy that is laid over this one meanwhile: one of the same folder, or a shipped"
            " one.",
            "backup-window",
            required=True,
        ),
    ),
)
POLICY: Final = ObjectSchema(
    "a policy",
    (
        FieldSchema("version", ConstSchema(VERSION), "Of the language.", "1", required=True),
        FieldSchema(
            "name", _NAME, "Of the policy, once in a folder.", "nas-evening", required=True
        ),
        FieldSchema("why", _WHY, "For whom and what for, in a sentence.", "Let the disks sleep."),
        FieldSchema(
            "match",
            MATCH,
            "For which volumes; the first file that matches a volume is its policy.",
            '{volume: "bcache*"}',
            default="every volume",
        ),
        FieldSchema(
            "include",
            ListSchema(_REFERENCE, single=True, least=1, most=10),
            "Shipped policies whose limits, objectives, strategies and rules hold, too, unless this"
            " file says otherwise.",
            "[database]",
        ),
        FieldSchema(
            "limits",
            LIMITS,
            "Hard bounds, above every strategy and rule.",
            "{sequential_cutoff: {min: 256KiB, max: 64MiB}}",
        ),
        FieldSchema(
            "objectives", OBJECTIVES, "What users should feel.", "{read_latency_p99: 30ms}"
        ),
        FieldSchema(
            "strategies",
            ListSchema(StrategySchema(), most=10),
            "Which strategies are on, each with its parameters; `[]`: none.",
            "[idle_destage: {wait: 300ms}]",
            default="all, as without a policy",
        ),
        FieldSchema(
            "rules",
            ListSchema(RULE, most=RULES_MAX),
            "Rules, above all strategies; the first that sets something wins.",
            '[{name: a, why: b, when: {idle: "yes"}, set: {destage_rate: max}}]',
        ),
        FieldSchema(
            "schedule",
            ListSchema(ENTRY, most=20),
            "Other policies at times of the day; the first entry whose time it is counts.",
            '[{name: a, at: "01:00-05:00", use: backup-window}]',
        ),
    ),
    _check_policy,
)
