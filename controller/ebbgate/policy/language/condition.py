# SPDX-License-Identifier: GPL-2.0-only
"""Reads the conditions of a rule: `{dirty_ratio: "> 40%"}`, joined by `all` and `any`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ebbgate.policy.language.diagnostic import Diagnostics, known_words, nearest, new_name, quoted
from ebbgate.policy.language.value_schemas import (
    Schema,
    figure_pattern,
    one_key_schema,
    scalar,
    under,
)
from ebbgate.policy.language.yaml_events import Mapping, Node, Scalar, Sequence
from ebbgate.policy.quantity import (
    EXAMPLES,
    NotAQuantity,
    SignalUnit,
    expected,
    parse_quantity,
)
from ebbgate.policy.rule_signals import SIGNALS, Signal
from ebbgate.policy.rules import Check, Groups

CHECKS_MAX: Final = 20
"""In one `when` or `until`; more cannot be read by people."""
_COMPARISON: Final = re.compile(r"(<=|>=|==|!=|<|>) *(.*)", re.DOTALL)
_FORM: Final = 'for example {dirty_ratio: "> 40%"}, or `all:` or `any:` with a list of these'
_NESTING: Final = "`any:` may have `all:` in its list, and `all:` only comparisons"


@dataclass(frozen=True, slots=True)
class When:
    """One condition, a list that must `all` hold, or `any` of several such groups; no deeper."""

    def read(self, node: Node, key: str, diagnostics: Diagnostics) -> Groups | None:
        if not isinstance(node, Mapping):
            diagnostics.add(node.position, key, "not a condition", _FORM)
            return None
        groups = _any(node, key, diagnostics)
        count = sum(len(group) for group in groups)
        if count > CHECKS_MAX:
            diagnostics.add(
                node.position, key, f"{count} comparisons", f"at most {CHECKS_MAX} are allowed"
            )
        return groups

    def schema(self) -> Schema:
        return {"$ref": "#/$defs/when"}

    def describe(self) -> str:
        return "comparisons of signals"


def _any(node: Mapping, key: str, diagnostics: Diagnostics) -> Groups:
    """Read `any: [...]` as several groups, anything else as one."""
    if [name.text for name, _ in node.entries] != ["any"]:
        return (_all(node, key, diagnostics),)
    listed = node.entries[0][1]
    return tuple(
        _all(item, under(key, "any"), diagnostics) for item in _items(listed, key, diagnostics)
    )


def _all(node: Node, key: str, diagnostics: Diagnostics) -> tuple[Check, ...]:
    """Read `all: [...]` or a mapping of comparisons; all of them must hold."""
    if not isinstance(node, Mapping) or not node.entries:
        diagnostics.add(node.position, key, "not a condition", _FORM)
        return ()
    if [name.text for name, _ in node.entries] == ["all"]:
        nodes = _items(node.entries[0][1], under(key, "all"), diagnostics)
        return tuple(check for each in nodes for check in _side_by_side(each, key, diagnostics))
    return _side_by_side(node, key, diagnostics)


def _items(node: Node, key: str, diagnostics: Diagnostics) -> tuple[Node, ...]:
    if isinstance(node, Sequence) and node.items:
        return node.items
    diagnostics.add(node.position, key, "not a list of conditions", _FORM)
    return ()


def _side_by_side(node: Node, key: str, diagnostics: Diagnostics) -> tuple[Check, ...]:
    if not isinstance(node, Mapping) or not node.entries:
        diagnostics.add(node.position, key, "not a condition", _FORM)
        return ()
    if len(node.entries) == 1 and node.entries[0][0].text in ("any", "all"):
        name = node.entries[0][0]
        what = f"`{name.text}` is nested too deeply"
        diagnostics.add(name.position, under(key, name.text)[:100], what, _NESTING)
        return ()
    found = (_check(name, value, key, diagnostics) for name, value in node.entries)
    return tuple([check for check in found if check is not None])


def _check(name: Scalar, value: Node, key: str, diagnostics: Diagnostics) -> Check | None:
    signal = SIGNALS.get(name.text)
    key = under(key, name.text if name.text.isprintable() else ascii(name.text))[:100]
    if signal is None:
        if name.text in ("any", "all"):
            what, listed, near = f"`{name.text}` must be the only key here", _FORM, ""
        elif renamed := new_name(name.text, SIGNALS):
            what, listed, near = renamed, "rename it", ""
        else:
            what, near = "unknown signal", nearest(name.text, (*SIGNALS, "any", "all"))
            listed = known_words("signals", SIGNALS, near)
        diagnostics.add(name.position, key, what, listed, near)
        return None
    if signal.unit is None:
        return _words(signal, value, key, diagnostics)
    return _figure(signal, value, key, diagnostics)


def _figure(signal: Signal, node: Node, key: str, diagnostics: Diagnostics) -> Check | None:
    assert signal.unit is not None
    wanted = f'write a comparison and a value, for example "> {EXAMPLES[signal.unit]}"'
    text = scalar(node, key, diagnostics, wanted)
    if text is None:
        return None
    match = _COMPARISON.fullmatch(text)
    if match is None:
        diagnostics.add(node.position, key, f"{quoted(text)} has no comparison", wanted)
        return None
    try:
        bound = parse_quantity(signal.unit, match[2])
    except NotAQuantity as wrong:
        diagnostics.add(node.position, key, wrong.what, expected(signal.unit), wrong.nearest)
        return None
    if bound < 0 or (signal.unit is SignalUnit.RATIO and bound > 1):
        allowed = "0% to 100%" if signal.unit is SignalUnit.RATIO else "0 or more"
        what = f"{quoted(match[2])} is out of range"
        diagnostics.add(node.position, key, what, f"allowed: {allowed}")
        return None
    return Check(signal.name, match[1], bound)


def _words(signal: Signal, node: Node, key: str, diagnostics: Diagnostics) -> Check | None:
    """Read `burst`, `"!= gap"`, or a list of alternatives."""
    wanted = f"write one of {', '.join(signal.words)}, or a list of these"
    if isinstance(node, Sequence) and node.items:
        words = tuple([scalar(item, key, diagnostics, wanted) or "" for item in node.items])
        comparison = "is"
    else:
        text = scalar(node, key, diagnostics, wanted)
        if text is None:
            return None
        match = _COMPARISON.fullmatch(text)
        if match is not None and match[1] not in ("==", "!="):
            diagnostics.add(
                node.position, key, f"{match[1]} cannot be used with {signal.name}", wanted
            )
            return None
        comparison = "is not" if match is not None and match[1] == "!=" else "is"
        # A comparison without a word would be met always or never.
        words = (text if match is None else match[2] or text,)
    for word in words:
        if word and word not in signal.words:
            near = nearest(word, signal.words)
            diagnostics.add(node.position, key, f"unknown value {quoted(word)}", wanted, near)
            return None
    return Check(signal.name, comparison, words)


def signal_schemas() -> Schema:
    """Return the JSON Schema of the comparisons, by signal."""
    return {name: {**_signal_schema(s), "description": s.about} for name, s in SIGNALS.items()}


def _signal_schema(signal: Signal) -> Schema:
    if signal.unit is not None:
        pattern = figure_pattern(signal.unit)
        return {"type": "string", "pattern": rf"^(<=|>=|==|!=|<|>) *({pattern}|0)$"}
    words = "|".join(signal.words)
    one: Schema = {"enum": [*signal.words, *((True, False) if "yes" in signal.words else ())]}
    text: Schema = {"type": "string", "pattern": f"^(==|!=) *({words})$"}
    return {"anyOf": [one, text, {"type": "array", "items": one, "minItems": 1}]}


def when_schema() -> Schema:
    """Return the JSON Schema of `when` and `until`."""
    checks: Schema = {
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/signals/{name}"} for name in SIGNALS},
        "additionalProperties": False,
        "minProperties": 1,
    }
    every = _keyed("all", checks)
    return {"anyOf": [_keyed("any", {"anyOf": [every, checks]}), every, checks]}


def _keyed(key: str, item: Schema) -> Schema:
    return one_key_schema(key, {"type": "array", "items": item, "minItems": 1})
