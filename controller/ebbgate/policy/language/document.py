# SPDX-License-Identifier: GPL-2.0-only
"""A policy as a file says it, before it is fitted to a volume. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ebbgate.model.volume import Kind
from ebbgate.policy import ADAPTIVE
from ebbgate.policy.language.problem import Position
from ebbgate.policy.language.shapes import Located
from ebbgate.policy.rules import Groups

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class Match:
    """For which volumes: any of the patterns (names of LVM too) and any of the kinds."""

    volumes: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class StrategyUse:
    """A strategy that is on, with the parameters that the file gives it, in base units."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule, not yet fitted to a kind of cache. `settings`: values in base units, or words."""

    name: str
    why: str
    when: Groups
    settings: Mapping[str, Any]
    hold_ns: int = 0
    until: Groups = ()
    cooldown_ns: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A time of the day at which another policy is laid over this one.

    `start_min`, `end_min`: minutes since midnight; an end before the start is of the next day.
    `days`: 0 (Monday) to 6, on which it starts. `overlay`: filled in when documents are linked.
    """

    name: str
    start_min: int
    end_min: int
    days: tuple[int, ...]
    use: Located
    overlay: PolicyDocument | None = None


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """What one file asks for. `strategies`: None where it names none, so all of them are on.

    `objectives`: in nanoseconds; `limits`: setting -> `min`, `max` in base units.
    """

    name: str
    file: str = ""
    why: str = ""
    match: Match = field(default_factory=Match)
    includes: tuple[Located, ...] = ()
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    objectives: Mapping[str, int] = field(default_factory=dict)
    strategies: tuple[StrategyUse, ...] | None = None
    rules: tuple[RuleText, ...] = ()
    schedule: tuple[Entry, ...] = ()
    name_place: Position = field(default_factory=Position)


ZERO = PolicyDocument(ADAPTIVE, why="Runs where no policy is given.")
"""The same as the shipped `adaptive`, which may not be installed."""
