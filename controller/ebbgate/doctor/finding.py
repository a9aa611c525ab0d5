# SPDX-License-Identifier: GPL-2.0-only
"""What advice is, and what it is given to look at. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ebbgate.model.volume import Device, Volume, VolumeState


class Weight(StrEnum):
    """How much it matters: `fault`: data or tuning at risk; `advice`: worth it; `note`: to know."""

    FAULT = "fault"
    ADVICE = "advice"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `command`: what does it, until the next boot; empty where none does."""

    id: str
    weight: Weight
    about: str
    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the rules look at. `disks`: at the bottom of the backing device, often itself.

    `held`: knobs that ebbgate holds now. `discards`: cache devices with `discard` on; `io_errors`:
    counts by device name.
    """

    volume: Volume
    state: VolumeState
    disks: tuple[Device, ...]
    discards: tuple[str, ...] = ()
    held: frozenset[str] = frozenset()
    io_errors: dict[str, int] = field(default_factory=dict)
