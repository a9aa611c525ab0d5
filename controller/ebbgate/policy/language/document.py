# SPDX-License-Identifier: GPL-2.0-only
"""A policy as written in a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ebbgate.model.volume import Kind
from ebbgate.policy import ADAPTIVE
from ebbgate.policy.language.diagnostic import Position
from ebbgate.policy.language.value_schemas import Located, ParamValue, Quantity
from ebbgate.policy.rules import Groups

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class Match:
    """Which volumes it is for: any of the patterns (also of LVM names) and any of the kinds."""

    volumes: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class StrategyUse:
    """A strategy that is on, with the parameters from the file in base units."""

    name: str
    values: Mapping[str, ParamValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule, not yet compiled for a kind of cache.

    `settings`: values in base units, or words. `policy`: the name of the policy that contains it.
    """

    name: str
    why: str
    when: Groups
    settings: Mapping[str, Quantity]
    hold_ns: int = 0
    until: Groups = ()
    cooldown_ns: int = 0
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the schedule: a time of the day at which another policy applies on top.

    `start_min`, `end_min`: minutes since midnight; an end before the start is on the next day.
    `days`: 0 (Monday) to 6, on which it starts. `overlay`: set when documents are linked.
    """

    name: str
    start_min: int
    end_min: int
    days: tuple[int, ...]
    use: Located
    overlay: PolicyDocument | None = None


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """The content of one file. `strategies`: None if it names none, so that all are on.

    `objectives`: in nanoseconds; `limits`: setting -> `min`, `max` in base units;
    `backing_scheduler`: empty if it names none.
    """

    name: str
    file: str = ""
    why: str = ""
    match: Match = field(default_factory=Match)
    includes: tuple[Located, ...] = ()
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    objectives: Mapping[str, int] = field(default_factory=dict)
    strategies: tuple[StrategyUse, ...] | None = None
    rules: tuple[RuleText, ...] = ()
    schedule: tuple[Entry, ...] = ()
    backing_scheduler: str = ""
    name_position: Position = field(default_factory=Position)


ZERO = PolicyDocument(ADAPTIVE, why="Runs where no policy is given.")
"""Equal to the shipped `adaptive`, which may not be installed."""
