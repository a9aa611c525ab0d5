# SPDX-License-Identifier: GPL-2.0-only
"""What two policies make of one recording, side by side in time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any

Row = dict[str, Any]


def differences(old: Sequence[Row], new: Sequence[Row]) -> list[tuple[str, Row]]:
    """Decisions of both in the order of their time: `-` of the old policy alone, `+` of the new
    alone, a blank for one that both take at the same moment for the same reason.
    """
    matcher = SequenceMatcher(None, [_key(r) for r in old], [_key(r) for r in new], autojunk=False)
    found: list[tuple[str, Row]] = []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            found += [(" ", row) for row in new[new_from:new_to]]
            continue
        changed = [("-", row) for row in old[old_from:old_to]]
        changed += [("+", row) for row in new[new_from:new_to]]
        found += sorted(changed, key=lambda each: each[1]["after_ns"])
    return found


def time_by_gate(rows: Sequence[Row], end_ns: int) -> dict[str, int]:
    """How long (ns) each kind of gate was wished until `end_ns` after the start; what was decided
    before the first decision is the kernel's.
    """
    spans: dict[str, int] = {}
    for since_ns, until_ns, kind in _spans(rows, end_ns):
        spans[kind] = spans.get(kind, 0) + until_ns - since_ns
    return {kind: span_ns for kind, span_ns in spans.items() if span_ns > 0}


def _spans(rows: Sequence[Row], end_ns: int) -> Iterable[tuple[int, int, str]]:
    since_ns, kind = 0, "released"
    for row in rows:
        yield since_ns, row["after_ns"], kind
        gate = row["gate"] or {}
        since_ns, kind = row["after_ns"], gate.get("kind", "released")
    yield since_ns, max(end_ns, since_ns), kind


def _key(row: Row) -> tuple[object, ...]:
    gate = row["gate"] or {}
    reasons = tuple(each["reason"] for each in row["proposals"] if each["wins"])
    return row["after_ns"], gate.get("kind"), row["sequential_cutoff_bytes"], reasons
