# SPDX-License-Identifier: GPL-2.0-only
"""A volume as it is now: levels, states, knobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ebbgate.model.decision import GateKind
from ebbgate.model.dm import DmHealth
from ebbgate.model.frame import Regime
from ebbgate.model.volume import Mode
from ebbgate.units import NS_PER_S
from ebbgate.web.metrics.exposition import Page
from ebbgate.web.metrics.knobs import knob_number

HOLD: Final = "hold"
_OTHER: Final = "other"
_MODES: Final = (*map(str, Mode), HOLD)
_GATES: Final = tuple(map(str, GateKind))
_REGIMES: Final = tuple(map(str, Regime))
# bcache's words (drivers/md/bcache/sysfs.c), then those of mapped volumes.
_STATES: Final = (
    *("no cache", "clean", "dirty", "inconsistent", "suspended"),
    *(str(each) for each in DmHealth if each is not DmHealth.OK),
    _OTHER,
)
_LEVELS: Final = {
    "ebbgate_dirty_data_bytes": "dirty_bytes",
    "ebbgate_dirty_room_bytes": "room_bytes",
    "ebbgate_cache_size_bytes": "cache_bytes",
    "ebbgate_in_use_ratio": "in_use_ratio",
    "ebbgate_time_to_full_seconds": "time_to_full_s",
    "ebbgate_time_to_clean_seconds": "time_to_clean_s",
    "ebbgate_backing_queue_requests": "backing_depth_ios",
}
_ABOUT: Final = ("kind", "title", "policy", "overlay", "cache_mode")

Document = Mapping[str, Any]


def mapping(value: Any) -> Document:
    """A part of a document; empty where it is something else, as of another version."""
    return value if isinstance(value, dict) else {}


def add_volume(page: Page, name: str, document: Document) -> None:
    """All that is known now."""
    volume = {"volume": name}
    # An empty label is the same as none: so a title that was not told is no other series.
    about = {key: document.get(key) or "" for key in _ABOUT}
    page.add("ebbgate_volume", {**volume, **about}, 1)
    for metric, key in _LEVELS.items():
        page.add(metric, volume, document.get(key))
    wait_ns = document.get("wait_ns")
    if isinstance(wait_ns, int):
        page.add("ebbgate_idle_wait_seconds", volume, wait_ns / NS_PER_S)
    _add_states(page, volume, document)
    _add_knobs(page, volume, mapping(document.get("knobs")))


def _add_states(page: Page, volume: Document, document: Document) -> None:
    mode = HOLD if document.get("held") else document.get("mode")
    if mode in _MODES:
        page.add_states("ebbgate_mode", volume, _MODES, mode)
    state = document.get("state")
    if isinstance(state, str):
        state = state if state in _STATES else _OTHER
        page.add_states("ebbgate_volume_state", volume, _STATES, state)
    regime = document.get("regime")
    if regime in _REGIMES:
        page.add_states("ebbgate_regime", volume, _REGIMES, regime)
    gate = mapping(document.get("gate")).get("kind")
    if gate in _GATES:
        page.add_states("ebbgate_gate_state", volume, _GATES, gate)


def _add_knobs(page: Page, volume: Document, knobs: Document) -> None:
    for knob, about in sorted(knobs.items()):
        found = knob_number(knob, mapping(about).get("value"))
        if found is not None:
            unit, value = found
            page.add("ebbgate_knob_value", {**volume, "knob": knob, "unit": unit}, value)
            manual = mapping(about).get("owner") == "manual"
            page.add("ebbgate_knob_manual", {**volume, "knob": knob}, manual)
