# SPDX-License-Identifier: GPL-2.0-only
"""Reads names that version 0.1 wrote into the history as those of today. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ebbgate.store.documents import Document

_OLD_STRATEGIES: Final = {"override": "wish", "rollback_guard": "no_regret"}
_STRATEGIES: Final = {old: new for new, old in _OLD_STRATEGIES.items()}


def strategy_name(name: str) -> str:
    """Return today's name of a strategy."""
    return _STRATEGIES.get(name, name)


def old_strategy_name(name: str | None) -> str | None:
    """Return the former name of a strategy; the same name if it has none."""
    return name if name is None else _OLD_STRATEGIES.get(name, name)


def current_row(row: Mapping[str, Any]) -> Document:
    """Return a decision or a knob write with today's names of strategies."""
    found = dict(row)
    for key in ("strategy", "gate_strategy", "cutoff_strategy"):
        if key in found:
            found[key] = strategy_name(found[key])
    if "proposals" in found:
        found["proposals"] = [current_row(each) for each in found["proposals"]]
    return found
