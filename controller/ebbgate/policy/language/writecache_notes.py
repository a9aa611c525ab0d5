# SPDX-License-Identifier: GPL-2.0-only
"""Notes on a policy that is for dm-writecache only, where no key has an effect. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import IDLE_DESTAGE, cannot
from ebbgate.policy.language.diagnostic import Diagnostic, Position
from ebbgate.policy.language.settings import DESTAGE_DEPTH, DESTAGE_RATE, WRITECACHE_HAS_NONE
from ebbgate.policy.language.value_schemas import under
from ebbgate.policy.language.yaml_events import Mapping, Node, Scalar, Sequence

_WHOLE: Final = ("include", "limits", "objectives", "backing_scheduler", "schedule")
"""Keys whose parts need no notes of their own."""
_WRITES_BACK: Final = (IDLE_DESTAGE, DESTAGE_RATE, DESTAGE_DEPTH)
_REMOVE: Final = "remove it"
_BY_OTHER_MEANS: Final = (
    "to write all dirty data back now, run ebbgate clean; to write back earlier, lower the"
    " watermarks in the table"
)

_Inert = tuple[Position, str, str]
"""Position and key of what has no effect, and the reason."""


def writecache_notes(node: Node, file: str) -> Iterator[Diagnostic]:
    """Yield a note on each strategy and each other key of a valid policy that only names it."""
    for position, key, why in _inert(node):
        wanted = _BY_OTHER_MEANS if key.rpartition(".")[2] in _WRITES_BACK else _REMOVE
        yield Diagnostic(file, position, key, f"has no effect here: {why}", wanted)


def _inert(node: Node) -> Iterator[_Inert]:
    for name, value in _entries(node):
        if name.text in _WHOLE:
            yield name.position, name.text, WRITECACHE_HAS_NONE
        elif name.text == "strategies":
            yield from _strategies(value)
        elif name.text == "rules":
            yield from _settings(value)


def _strategies(listed: Node) -> Iterator[_Inert]:
    for item in _items(listed):
        word = (
            item if isinstance(item, Scalar) else next((name for name, _ in _entries(item)), None)
        )
        if word is None:
            continue
        why = cannot(Kind.DM_WRITECACHE, [word.text]).get(word.text)
        if why is not None:
            yield word.position, under("strategies", word.text), why


def _settings(rules: Node) -> Iterator[_Inert]:
    for rule in _items(rules):
        for name, value in _entries(rule):
            if name.text == "set":
                for setting, _ in _entries(value):
                    key = under("rules.set", setting.text)
                    yield setting.position, key, WRITECACHE_HAS_NONE


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else ()


def _entries(node: Node) -> tuple[tuple[Scalar, Node], ...]:
    return node.entries if isinstance(node, Mapping) else ()
