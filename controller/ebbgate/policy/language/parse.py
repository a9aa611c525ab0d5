# SPDX-License-Identifier: GPL-2.0-only
"""Reads the text of one file into a policy document or diagnostics. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ebbgate import __version__
from ebbgate.model.volume import Kind
from ebbgate.policy.language.diagnostic import (
    Diagnostic,
    Diagnostics,
    Position,
    without_effect,
)
from ebbgate.policy.language.document import DAYS, Entry, Match, PolicyDocument, RuleText
from ebbgate.policy.language.grammar import (
    POLICY,
    VERSION,
    EntryValues,
    MatchValues,
    PolicyValues,
    RuleValues,
)
from ebbgate.policy.language.writecache_notes import writecache_notes
from ebbgate.policy.language.yaml_events import Mapping, Node, Scalar, read_nodes


@dataclass(frozen=True, slots=True)
class Parsed:
    """Either a document or problems, never both. `notes`: keys of the document without effect."""

    document: PolicyDocument | None
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()


def parse(source: str | bytes, file: str) -> Parsed:
    """Read one file; `file` is its name in diagnostics. Never raises."""
    diagnostics = Diagnostics(file)
    node = read_nodes(source, diagnostics)
    newer = node is not None and _is_newer(node, diagnostics)
    values = None if node is None or newer else POLICY.read(node, "", diagnostics)
    if diagnostics.problems or node is None or values is None:
        return Parsed(None, tuple(sorted(diagnostics.problems, key=lambda each: each.position)))
    document = _document(values, file, _position_of(node, "name"))
    notes = _notes(node, document.match.kinds, diagnostics)
    return Parsed(document, notes=tuple(sorted(notes, key=lambda each: each.position)))


def _notes(node: Node, kinds: Collection[Kind], diagnostics: Diagnostics) -> Iterator[Diagnostic]:
    if set(kinds) == {Kind.DM_WRITECACHE}:
        # They replace those on keys for one other kind, which would name the same keys again.
        diagnostics.kind_only.clear()
        yield from writecache_notes(node, diagnostics.file)
    yield from without_effect(diagnostics, kinds, Kind)


def _is_newer(node: Node, diagnostics: Diagnostics) -> bool:
    """Refuse a file for a later version of the language: its other errors would mislead."""
    entries = node.entries if isinstance(node, Mapping) else ()
    given = next((value for name, value in entries if name.text == "version"), None)
    if not isinstance(given, Scalar) or not re.fullmatch("[0-9]{1,9}", given.text):
        return False
    if int(given.text) <= VERSION:
        return False
    what = f"ebbgate {__version__} knows version {VERSION} of the policy language only"
    hint = f"install an ebbgate that knows version {int(given.text)}, or rewrite the file"
    diagnostics.add(given.position, "version", what, hint)
    return True


def _document(values: PolicyValues, file: str, name_position: Position) -> PolicyDocument:
    return PolicyDocument(
        name=values["name"],
        file=file,
        why=values.get("why", ""),
        match=_match(values.get("match", {})),
        includes=values.get("include", ()),
        limits=values.get("limits", {}),
        objectives={name: int(value) for name, value in values.get("objectives", {}).items()},
        strategies=values.get("strategies"),
        rules=tuple(_rule(rule, values["name"]) for rule in values.get("rules", ())),
        schedule=tuple(_entry(entry) for entry in values.get("schedule", ())),
        backing_scheduler=values.get("backing_scheduler", ""),
        name_position=name_position,
    )


def _match(values: MatchValues) -> Match:
    return Match(values.get("volume", ()), tuple(Kind(kind) for kind in values.get("kind", ())))


def _rule(values: RuleValues, policy: str) -> RuleText:
    return RuleText(
        name=values["name"],
        why=values["why"].rstrip("."),
        when=values["when"],
        settings=values["set"],
        hold_ns=int(values.get("for", 0)),
        until=values.get("until", ()),
        cooldown_ns=int(values.get("cooldown", 0)),
        policy=policy,
    )


def _entry(values: EntryValues) -> Entry:
    start_min, end_min = values["at"]
    days = values.get("days", DAYS)
    return Entry(
        name=values["name"],
        start_min=start_min,
        end_min=end_min,
        days=tuple(DAYS.index(day) for day in days),
        use=values["use"],
    )


def _position_of(node: Node, key: str) -> Position:
    entries = node.entries if isinstance(node, Mapping) else ()
    return next((value.position for name, value in entries if name.text == key), Position())
