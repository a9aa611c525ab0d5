# SPDX-License-Identifier: GPL-2.0-only
"""Reads YAML text into nodes with positions; refuses all of YAML that policies do not need. Pure.

Events are read one by one, since the library's composer recurses as deep as the text is nested.
Every bound is checked before anything grows. Scalars stay text: the schema decides what `01:00` or
`off` means, not YAML.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml  # type: ignore[import-untyped]

from ebbgate.policy.language.diagnostic import Diagnostics, Position, quoted

BYTES_MAX: Final = 64 * 1024
"""The longest shipped policy has 3 KiB."""
DEPTH_MAX: Final = 12
"""The language itself is 8 levels deep."""
NODES_MAX: Final = 10_000
SCALAR_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value without its quotes. `plain`: it had none."""

    position: Position
    text: str
    plain: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    position: Position
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their values, in order; no key occurs twice."""

    position: Position
    entries: tuple[tuple[Scalar, Node], ...]


Node = Scalar | Sequence | Mapping


class _Refused(Exception):
    """Reading of this file stops."""

    def __init__(self, position: Position, what: str, expected: str = "") -> None:
        super().__init__(what)
        self.position = position
        self.what = what
        self.expected = expected


def read_nodes(source: str | bytes, diagnostics: Diagnostics) -> Node | None:
    """Return the document of a file; None after adding a diagnostic."""
    try:
        return _Builder(_decoded(source), diagnostics).document()
    except _Refused as refused:
        diagnostics.add(refused.position, "", refused.what, refused.expected)
        return None


def _decoded(source: str | bytes) -> str:
    # A text is saved as bytes, and must be readable then.
    data = source.encode(errors="surrogatepass") if isinstance(source, str) else source
    length = len(data)
    if length > BYTES_MAX:
        raise _Refused(
            Position(), f"the file has {length} bytes", f"at most {BYTES_MAX} bytes are allowed"
        )
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = source[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        position = Position(before.count(b"\n") + 1, column)
        raise _Refused(position, "not UTF-8", "save the file in UTF-8") from error


class _Builder:
    """Turns events into nodes and counts them; the library has no types for its events."""

    def __init__(self, text: str, diagnostics: Diagnostics) -> None:
        self._text = text
        self._diagnostics = diagnostics
        self._nodes = 0
        self._last = Position()

    def document(self) -> Node | None:
        events = self._events()
        found: list[Node] = []
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found:
                    raise _Refused(
                        _position(event), "a second document", "write one policy per file"
                    )
                found.append(self._node(next(events), events, 0))
        if not found or (isinstance(found[0], Scalar) and not found[0].text):
            raise _Refused(Position(), "the file is empty", "a policy begins with `version: 1`")
        return found[0]

    def _events(self) -> Iterator[yaml.Event]:
        """Yield every event; errors of the library become refusals with their position."""
        try:
            for event in yaml.parse(self._text, Loader=yaml.SafeLoader):
                self._last = _position(event)
                yield event
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            position = Position(mark.line + 1, mark.column + 1) if mark else self._last
            raise _Refused(position, f"not YAML: {_plain(error.problem)}", _hint(error)) from error
        except yaml.reader.ReaderError as error:
            before = self._text[: error.position]
            position = Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
            what = f"a character that YAML does not allow (U+{error.character:04X})"
            raise _Refused(position, what, "remove it") from error
        except (ValueError, OverflowError) as error:
            # Raised by the library for escapes beyond Unicode and for huge version numbers.
            what = "not YAML: an escape or a number out of range"
            raise _Refused(self._last, what, "write the character or number itself") from error

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        position = _position(event)
        self._nodes += 1
        if depth > DEPTH_MAX:
            raise _Refused(position, "nested too deeply", f"at most {DEPTH_MAX} levels are allowed")
        if self._nodes > NODES_MAX:
            raise _Refused(position, "too many values", f"at most {NODES_MAX} are allowed")
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _Refused(position, "anchors and aliases are not allowed", "repeat the value")
        if event.tag is not None:
            raise _Refused(position, f"tags are not allowed: {quoted(event.tag)}", "remove it")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, position)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(position, events, depth)
        return self._mapping(position, events, depth)

    def _scalar(self, event: yaml.ScalarEvent, position: Position) -> Scalar:
        text = event.value
        if len(text) > SCALAR_MAX:
            raise _Refused(
                position, "the value is too long", f"at most {SCALAR_MAX} characters are allowed"
            )
        for character in text:
            # These could confuse a terminal or could not be printed.
            if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
                raise _Refused(
                    position, f"a control character (U+{ord(character):04X})", "remove it"
                )
        return Scalar(position, text, event.style is None)

    def _sequence(self, position: Position, events: Iterator[yaml.Event], depth: int) -> Sequence:
        items = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, events, depth + 1))
        return Sequence(position, tuple(items))

    def _mapping(self, position: Position, events: Iterator[yaml.Event], depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._node(event, events, depth + 1)
            if not isinstance(key, Scalar):
                raise _Refused(key.position, "the key is not a word", "write `key: value`")
            value = self._node(next(events), events, depth + 1)
            if key.text in entries:
                first = entries[key.text][0].position
                what = f"duplicate key, first in line {first.line}"
                self._diagnostics.add(key.position, key.text, what, "remove one of them")
            else:
                entries[key.text] = (key, value)
        return Mapping(position, tuple(entries.values()))


def _position(event: yaml.Event) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _plain(text: str | None) -> str:
    shown = (text or "unreadable").replace("'\\x00'", "the end")
    return "".join(c if c.isprintable() else " " for c in shown)[:200]


def _hint(error: yaml.MarkedYAMLError) -> str:
    """Name the most frequent cause."""
    message = f"{error.problem} {error.context}"
    if "'>'" in message or "block scalar" in message:
        return 'put a comparison in quotes: "> 40%"'
    if "'\\t'" in message:
        return "indent with spaces"
    if any(sign in message for sign in ("'%'", "'@'", "'`'", "'*'", "alias")):
        return 'put the value in quotes: "*"'
    return "see the examples in policies/README.md"
