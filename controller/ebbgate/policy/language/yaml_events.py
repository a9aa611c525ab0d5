# SPDX-License-Identifier: GPL-2.0-only
"""Text to a tree of nodes, each with its place; all of YAML that a policy does not need is refused.
Pure.

The parser's events are read one by one and not composed by the library, which would recurse as deep
as the text says: so every bound is held before anything grows. Scalars stay text: what `01:00` or
`off` means is for the shape that expects it, not for YAML's guesses.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from ebbgate.policy.language.problem import Diagnostics, Position, quoted

BYTES_MAX: Final = 64 * 1024
"""The longest shipped policy has 3 KiB."""
DEPTH_MAX: Final = 12
"""The language itself is 8 deep."""
NODES_MAX: Final = 10_000
SCALAR_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as it was written, without quotes. `plain`: it had none."""

    place: Position
    text: str
    plain: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    place: Position
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their values, in order; a key is there once."""

    place: Position
    entries: tuple[tuple[Scalar, Node], ...]


Node = Scalar | Sequence | Mapping


class _Refused(Exception):
    """Reading this file goes no further."""

    def __init__(self, place: Position, what: str, expected: str = "") -> None:
        super().__init__(what)
        self.place = place
        self.what = what
        self.expected = expected


def read_nodes(source: str | bytes, findings: Diagnostics) -> Node | None:
    """The one document of a file; None where it is none, with the reason among the findings."""
    try:
        return _Builder(_decoded(source), findings).document()
    except _Refused as refused:
        findings.add(refused.place, "", refused.what, refused.expected)
        return None


def _decoded(source: str | bytes) -> str:
    length = len(source)
    if length > BYTES_MAX:
        raise _Refused(Position(), f"{length} bytes are too long", f"at most {BYTES_MAX} bytes")
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = source[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        place = Position(before.count(b"\n") + 1, column)
        raise _Refused(place, "not UTF-8", "save the file in UTF-8") from error


class _Builder:
    """Turns events into nodes and counts what they cost."""

    def __init__(self, text: str, findings: Diagnostics) -> None:
        self._text = text
        self._findings = findings
        self._nodes = 0
        self._last = Position()

    def document(self) -> Node | None:
        events = self._events()
        found: list[Node] = []
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found:
                    raise _Refused(_place(event), "a second document", "one policy in a file")
                found.append(self._node(next(events), events, 0))
        if not found or (isinstance(found[0], Scalar) and not found[0].text):
            raise _Refused(Position(), "the file is empty", "a policy begins with `version: 1`")
        return found[0]

    def _events(self) -> Iterator[Any]:
        """Every event; what the library cannot read becomes a refusal with its place."""
        try:
            for event in yaml.parse(self._text, Loader=yaml.SafeLoader):
                self._last = _place(event)
                yield event
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Position(mark.line + 1, mark.column + 1) if mark else self._last
            raise _Refused(place, f"not YAML: {_plain(error.problem)}", _hint(error)) from error
        except yaml.reader.ReaderError as error:
            before = self._text[: error.position]
            place = Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
            what = f"a character that YAML does not allow (U+{error.character:04X})"
            raise _Refused(place, what, "remove it") from error
        except (ValueError, OverflowError) as error:
            # The library's own: an escape beyond Unicode, a version number of thousands of digits.
            what = "not YAML: an escape or a number out of range"
            raise _Refused(self._last, what, "write it plainly") from error

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        place = _place(event)
        self._nodes += 1
        if depth > DEPTH_MAX:
            raise _Refused(place, "nested too deep", f"at most {DEPTH_MAX} levels")
        if self._nodes > NODES_MAX:
            raise _Refused(place, "too many values", f"at most {NODES_MAX}")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _Refused(place, "anchors and aliases are not used here", "write the value out")
        if event.tag is not None:
            raise _Refused(place, f"the tag {quoted(event.tag)} is not used here", "remove it")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place, events, depth)
        return self._mapping(place, events, depth)

    def _scalar(self, event: Any, place: Position) -> Scalar:
        text = event.value
        if len(text) > SCALAR_MAX:
            raise _Refused(place, "a value is too long", f"at most {SCALAR_MAX} characters")
        for character in text:
            # Other than these would break a terminal, or could not even be printed.
            if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
                raise _Refused(place, f"a control character (U+{ord(character):04X})", "remove it")
        return Scalar(place, text, event.style is None)

    def _sequence(self, place: Position, events: Iterator[Any], depth: int) -> Sequence:
        items = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, events, depth + 1))
        return Sequence(place, tuple(items))

    def _mapping(self, place: Position, events: Iterator[Any], depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._node(event, events, depth + 1)
            if not isinstance(key, Scalar):
                raise _Refused(key.place, "a key that is no word", "write `key: value`")
            value = self._node(next(events), events, depth + 1)
            if key.text in entries:
                first = entries[key.text][0].place
                what = f"the key is there twice, first in line {first.line}"
                self._findings.add(key.place, key.text, what, "keep one of them")
            else:
                entries[key.text] = (key, value)
        return Mapping(place, tuple(entries.values()))


def _place(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _plain(text: str | None) -> str:
    said = (text or "unreadable").replace("'\\x00'", "the end")
    return "".join(c if c.isprintable() else " " for c in said)[:200]


def _hint(error: Any) -> str:
    """What most often is the cause."""
    said = f"{error.problem} {error.context}"
    if "'>'" in said or "block scalar" in said:
        return 'put a comparison in quotes: "> 40%"'
    if "'\\t'" in said:
        return "indent with spaces"
    if "'%'" in said or "'@'" in said or "'`'" in said or "'*'" in said or "alias" in said:
        return 'put the value in quotes: "*"'
    return "see the examples in policies/README.md"
