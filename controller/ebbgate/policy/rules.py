# SPDX-License-Identifier: GPL-2.0-only
"""Rules of a policy: propose settings once a condition has held for long enough. Pure.

    off   the conditions do not hold, or not for long enough, or the rule cools down
    on    the settings are proposed until `until` holds or a signal is unknown

Conditions are an OR of ANDs over signals (policy.rule_signals). An unknown signal never holds and
does not count towards the dwell. Rules that contradict each other do not flap: once a rule has
changed a setting, no rule changes it again within INTERVAL_NS.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ebbgate.model.decision import Condition, Proposal
from ebbgate.model.frame import Frame
from ebbgate.policy.quantity import format_quantity
from ebbgate.policy.rule_signals import SIGNALS, Value
from ebbgate.units import NS_PER_S, format_ns

INTERVAL_NS: Final = 5 * NS_PER_S
"""The shortest time between two changes of one setting by rules."""

Bound = float | tuple[str, ...]

COMPARE: Final[Mapping[str, Callable[[Value, Bound], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "is": lambda value, words: isinstance(words, tuple) and value in words,
    "is not": lambda value, words: isinstance(words, tuple) and value not in words,
}


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison. `bound`: in the signal's base unit, or the words that match."""

    signal: str
    comparison: str
    bound: Bound


Groups = tuple[tuple[Check, ...], ...]
"""Holds if all checks of any group hold."""


RuleKey = tuple[str, str]
"""The names of its policy and of a rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    - `proposal`: while it is on; if that is `unsupported`, the rule stays off.
    - `settings`: the names of what it sets.
    - `dwell_ns`: how long `when` must hold.
    - `until`: empty: as long as `when` holds.
    - `policy`: the name of the policy that contains it. By the schedule another one may apply for
      some time, and have another rule of the same name.
    """

    name: str
    when: Groups
    proposal: Proposal
    settings: tuple[str, ...]
    dwell_ns: int = 0
    until: Groups = ()
    cooldown_ns: int = 0
    policy: str = ""

    @property
    def key(self) -> RuleKey:
        """What its state goes by, also after an edit of the policy."""
        return self.policy, self.name


@dataclass(frozen=True, slots=True)
class RuleState:
    """`since_ns`: of the last change (None: none yet). `holding_since_ns`: start of the dwell."""

    on: bool = False
    since_ns: int | None = None
    holding_since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class RulesState:
    """State of all rules of a volume.

    - `changed_ns`: setting -> its last change.
    - `in_force`: the proposals of rules that are on, in the order of the policy.
    - `evaluated`: the rules that `in_force` comes from.
    - `paused`: none is in force until the next frame, whatever they remember.
    """

    rules: Mapping[RuleKey, RuleState] = field(default_factory=dict)
    changed_ns: Mapping[str, int] = field(default_factory=dict)
    in_force: tuple[Proposal, ...] = ()
    evaluated: tuple[Rule, ...] = ()
    paused: bool = False


class Measured(dict[str, Value | None]):
    """The signals of one frame, each computed when it is first read."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self._frame = frame

    def __missing__(self, name: str) -> Value | None:
        value = self[name] = SIGNALS[name].of(self._frame)
        return value


_NEW: Final = RuleState()


def on_frame(state: RulesState, frame: Frame, rules: tuple[Rule, ...], now_ns: int) -> RulesState:
    """Handle a tick."""
    if not rules:
        return state if not state.rules else RulesState()
    values = Measured(frame)
    stepped, changed_ns = {}, dict(state.changed_ns)
    for rule in rules:
        before = state.rules.get(rule.key, _NEW)
        # By the old times: all changes of one tick count as one.
        free = interval_left_ns(state, rule, now_ns) == 0
        after = _step(before, rule, values, now_ns, free)
        stepped[rule.key] = after
        if after.on is not before.on:
            changed_ns.update(dict.fromkeys(rule.settings, now_ns))
    return RulesState(stepped, changed_ns, _proposals_on(stepped, rules), rules)


def pause(state: RulesState) -> RulesState:
    """Put no rule in force for a moment in which nothing can be tuned; the times go on."""
    return replace(state, paused=True)


def in_force(state: RulesState, rules: tuple[Rule, ...]) -> tuple[Proposal, ...]:
    """Return the proposals of the rules that are on, in the order of the policy.

    The policy may have changed since the last frame: then its rules of the same name stay on.
    """
    if state.paused:
        return ()
    return state.in_force if state.evaluated is rules else _proposals_on(state.rules, rules)


def proposals(
    state: RulesState, rules: tuple[Rule, ...], frame: Frame, now_ns: int
) -> tuple[Proposal, ...]:
    """Return the proposals of all rules, with their conditions and what is missing."""
    values = Measured(frame)
    return tuple(_explained(state, rule, values, now_ns) for rule in rules)


def holds(groups: Groups, values: Mapping[str, Value | None]) -> bool | None:
    """Return whether they hold; None if that depends on an unknown signal."""
    unknown = False
    for group in groups:
        verdict = _all_hold(group, values)
        if verdict:
            return True
        unknown = unknown or verdict is None
    return None if unknown else False


def interval_left_ns(state: RulesState, rule: Rule, now_ns: int) -> int:
    """Return how long none of its settings may change; 0 if they may."""
    left = [
        INTERVAL_NS - (now_ns - state.changed_ns[setting])
        for setting in rule.settings
        if setting in state.changed_ns
    ]
    return max(0, *left) if left else 0


def _proposals_on(
    states: Mapping[RuleKey, RuleState], rules: Iterable[Rule]
) -> tuple[Proposal, ...]:
    able = (rule for rule in rules if not rule.proposal.unsupported)
    return tuple([rule.proposal for rule in able if states.get(rule.key, _NEW).on])


def _all_hold(group: Iterable[Check], values: Mapping[str, Value | None]) -> bool | None:
    unknown = False
    for check in group:
        value = values[check.signal]
        if value is None:
            unknown = True
        elif not COMPARE[check.comparison](value, check.bound):
            return False
    return None if unknown else True


def _step(
    state: RuleState, rule: Rule, values: Mapping[str, Value | None], now_ns: int, free: bool
) -> RuleState:
    if rule.proposal.unsupported:
        return _NEW
    if state.on:
        return RuleState(False, now_ns) if free and _over(rule, values) else state
    if not holds(rule.when, values):
        return state if state.holding_since_ns is None else replace(state, holding_since_ns=None)
    since_ns = now_ns if state.holding_since_ns is None else state.holding_since_ns
    held = now_ns - since_ns >= rule.dwell_ns
    cool = state.since_ns is None or now_ns - state.since_ns >= rule.cooldown_ns
    if held and cool and free:
        return RuleState(True, now_ns)
    return replace(state, holding_since_ns=since_ns)


def _over(rule: Rule, values: Mapping[str, Value | None]) -> bool:
    """Return whether a rule that is on ends; an unknown signal ends it."""
    if rule.until:
        return holds(rule.until, values) is not False
    return holds(rule.when, values) is not True


def _explained(
    state: RulesState, rule: Rule, values: Mapping[str, Value | None], now_ns: int
) -> Proposal:
    mine = state.rules.get(rule.key, _NEW)
    if rule.proposal.unsupported:
        return rule.proposal
    if mine.on:
        lasting = format_ns(now_ns - (mine.since_ns or 0))
        groups, word = (rule.until, "until ") if rule.until else (rule.when, "")
        shown = _conditions(groups, values, word)
        return replace(
            rule.proposal, reason=f"{rule.proposal.reason} ({lasting})", conditions=shown
        )
    reason = f"off: {_waits_for(state, mine, rule, values, now_ns)}"
    shown = _conditions(rule.when, values, "")
    return Proposal(rule.proposal.strategy, reason, shown)


def _waits_for(
    state: RulesState, mine: RuleState, rule: Rule, values: Mapping[str, Value | None], now_ns: int
) -> str:
    """Return what is missing before it comes on."""
    if not holds(rule.when, values):
        unknown = sorted({c.signal for g in rule.when for c in g if values[c.signal] is None})
        return f"unknown: {', '.join(unknown)}" if unknown else "its conditions do not hold"
    cool_ns = rule.cooldown_ns - (now_ns - mine.since_ns) if mine.since_ns is not None else 0
    if cool_ns > 0:
        return f"cooling down, {format_ns(cool_ns)} left"
    since_ns = now_ns if mine.holding_since_ns is None else mine.holding_since_ns
    held_ns = now_ns - since_ns
    if held_ns < rule.dwell_ns:
        return f"has held for {format_ns(held_ns)} of {format_ns(rule.dwell_ns)}"
    left_ns = interval_left_ns(state, rule, now_ns)
    return f"its setting changed a moment ago, {format_ns(left_ns)} left"


def _conditions(
    groups: Groups, values: Mapping[str, Value | None], word: str
) -> tuple[Condition, ...]:
    shown = []
    for number, group in enumerate(groups):
        for place, check in enumerate(group):
            joint = "and " if place else "or " if number else ""
            shown.append(_condition(check, values[check.signal], word + joint))
    return tuple(shown)


def _condition(check: Check, value: Value | None, before: str) -> Condition:
    return Condition(
        before + check.signal,
        None if value is None else _text(check.signal, value),
        check.comparison,
        " or ".join(check.bound)
        if isinstance(check.bound, tuple)
        else _text(check.signal, check.bound),
        value is not None and COMPARE[check.comparison](value, check.bound),
    )


def _text(signal: str, value: Value) -> str:
    unit = SIGNALS[signal].unit
    return str(value) if isinstance(value, str) or unit is None else format_quantity(unit, value)
