# SPDX-License-Identifier: GPL-2.0-only
"""Decisions, their reasons and their outcomes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ebbgate.model.promotion import Promotion


class GateKind(StrEnum):
    """How much destage is let through.

    - `released`: the kernel's own settings.
    - `held`: nothing, so that the disk can sleep; what is under way ends.
    - `closed`: almost nothing.
    - `paced`: at a rate.
    - `resting`: almost nothing, for a moment within a gap.
    - `open`: as fast as the kernel can, without an end.
    """

    RELEASED = "released"
    HELD = "held"
    CLOSED = "closed"
    PACED = "paced"
    RESTING = "resting"
    OPEN = "open"

    @classmethod
    def _missing_(cls, value: object) -> GateKind | None:
        # Earlier versions called a paced gate so for moments.
        return cls.PACED if value == "pulsed" else None


@dataclass(frozen=True, slots=True)
class Gate:
    """The desired state of the destage gate.

    - `rate_bytes_per_s`: of a `paced` gate; the leak of a `closed` or `resting` one; the highest
      mean of an `open` one, which rests keep, 0 for any.
    - `depth_ios`: pieces at once, instead of a rate, where the driver limits these (dm-cache).
    - `queue_depth`: requests that each disk below the volume takes at once; 0: as many as before.
    """

    kind: GateKind
    rate_bytes_per_s: int = 0
    depth_ios: int = 0
    queue_depth: int = 0


PROMOTION: Final = "promotion"
"""The name of the setting that says what is moved into the cache."""
DISK_QUEUE: Final = "queue of the disks"
"""The condition of a policy that makes the disks' queues short in gaps."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a measured value with a threshold, for people.

    `measured` is None if the signal is unknown; then the condition does not hold.
    """

    signal: str
    measured: str | None
    comparison: str
    threshold: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one strategy proposes and why; None: it proposes nothing for that setting.

    - `congestion_bypass`: False switches the kernel's bypass of a slow cache device off.
    - `split_requests`: makes requests shorter than a cache block, so that dm-cache does not promote
      them at once.
    - `promotion`: what is to be moved into the cache.
    - `knobs`: overridden values, as the kernel takes them; no strategy sets these knobs.
    - `suppresses`: settings (`gate`, `streams`) that go back to what they were before.
    """

    strategy: str
    reason: str
    conditions: tuple[Condition, ...] = ()
    gate: Gate | None = None
    sequential_cutoff_bytes: int | None = None
    split_requests: bool = False
    congestion_bypass: bool | None = None
    collect_garbage: bool = False
    promotion: Promotion | None = None
    unsupported: str = ""
    knobs: tuple[tuple[str, str], ...] = ()
    suppresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What applies after conflicts were resolved, with every proposal.

    `promotion`: stays the same object until chunks were moved or others are chosen.
    """

    volume: str
    at_ns: int
    proposals: tuple[Proposal, ...]
    gate: Gate | None = None
    gate_strategy: str = ""
    sequential_cutoff_bytes: int | None = None
    cutoff_strategy: str = ""
    split_requests: bool = False
    congestion_bypass: bool | None = None
    collect_garbage: bool = False
    promotion: Promotion | None = None
    promotion_strategy: str = ""


RESTORE: Final = "restore"
"""The actor of writes that put originals back."""
CLEAN: Final = "clean"
"""The actor of writes that begin or end a cleaning."""


@dataclass(frozen=True, slots=True)
class Action:
    """One knob to write; nothing is left to choose. Values are text, as the kernel takes them.

    `decision`: the number of the decision behind it, counted by the volume's loop, or None.
    """

    volume: str
    knob: str
    old: str | None
    new: str
    strategy: str
    reason: str
    decision: int | None = None


class OutcomeKind(StrEnum):
    """The outcome of an action.

    - `manual`: someone else has written the knob, so it is left alone until released.
    - `too_soon`: the knob was written a moment ago; the action may be tried again.
    """

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    MANUAL = "manual"
    TOO_SOON = "too_soon"
    FAILED = "failed"


NOT_WRITTEN: Final = frozenset({OutcomeKind.FAILED, OutcomeKind.REFUSED, OutcomeKind.MANUAL})
"""The outcomes of a knob that does not have the wanted value."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """An action and its outcome. `read_back`: the value as the kernel prints it afterwards."""

    action: Action
    kind: OutcomeKind
    at_ns: int
    read_back: str | None = None
    error: str = ""


class LastWriteLost(OSError):
    """A knob has an original in the journal, and what was written after it is unknown."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The value that a knob had before ebbgate's first write, kept until it is restored.

    - `last_written`: the value ebbgate was about to write when the entry was made; later ones are
      in `store.last_written`.
    - `device_uuid`: of the bcache backing device, the cache set or the dm device that had the
      value; empty if it has none.
    - `instance`: the inode of the device's folder in sysfs, which changes when the kernel creates
      the device again; 0 if unknown.
    """

    volume: str
    knob: str
    path: str
    original: str
    last_written: str
    boot_id: str
    at_unix_ns: int
    by: str
    why: str = field(default="")
    device_uuid: str = ""
    instance: int = 0
