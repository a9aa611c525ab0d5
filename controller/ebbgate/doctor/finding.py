# SPDX-License-Identifier: GPL-2.0-only
"""What advice is, and what it is given to look at. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ebbgate.model.volume import Device, Volume, VolumeState


class Weight(StrEnum):
    """How much it matters: `fault`: data or tuning at risk; `advice`: worth it; `note`: to know."""

    FAULT = "fault"
    ADVICE = "advice"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Change:
    """What `ebbgate apply` does: knobs that ebbgate writes anyway, as the kernel takes them, or one
    command of LVM that is safe while the volume is in use, with the one that takes it back.
    """

    knobs: tuple[tuple[str, str], ...] = ()
    argv: tuple[str, ...] = ()
    undo_argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `command`: what does it by hand, until the next boot; empty where none does.

    `evidence`: what was measured here, empty without a daemon; `effect`: what to expect of it.
    `change`: None where it is the administrator's alone.
    """

    id: str
    weight: Weight
    about: str
    text: str
    command: str = ""
    evidence: str = ""
    effect: str = ""
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the rules look at. `disks`: at the bottom of the backing device, often itself.

    `held`: knobs that ebbgate holds now. `discards`: cache devices with `discard` on; `io_errors`:
    counts by device name. `live`: what the daemon says of the volume, empty without one.
    """

    volume: Volume
    state: VolumeState
    disks: tuple[Device, ...]
    discards: tuple[str, ...] = ()
    held: frozenset[str] = frozenset()
    io_errors: dict[str, int] = field(default_factory=dict)
    live: Mapping[str, Any] = field(default_factory=dict)

    def set_by_hand(self, knob: str) -> int | None:
        """The knob's value where ebbgate does not hold it; None where it does, or none is known."""
        value = self.state.knobs.get(knob, "")
        return int(value) if value.isdigit() and knob not in self.held else None
