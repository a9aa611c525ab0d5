# SPDX-License-Identifier: GPL-2.0-only
"""What was decided, why, and what became of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class GateKind(StrEnum):
    """How destage is let through.

    `released`: the kernel's own settings; `closed`: as good as nothing; `paced`: at a rate;
    `pulsed`: for a moment as fast as the kernel can, in the idle I/O class, then paced;
    `open`: the same without an end.
    """

    RELEASED = "released"
    CLOSED = "closed"
    PACED = "paced"
    PULSED = "pulsed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Gate:
    """The wished state of the destage gate.

    `rate_bytes_per_s` where it is `paced` or `pulsed`, and for `closed` the little that seeps
    through; `pulse_ns` where it is `pulsed`. `depth_ios`: instead of a rate where the cache driver
    bounds what is under way (dm-cache): so many pieces at once.
    """

    kind: GateKind
    rate_bytes_per_s: int = 0
    pulse_ns: int = 0
    depth_ios: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of an explanation: the measured value beside the threshold.

    `measured` is None where the signal is unknown: then the condition never holds.
    """

    signal: str
    measured: str | None
    comparison: str
    threshold: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one strategy wants and why. `None`: it has no wish for that setting.

    `congestion_bypass`: False switches the kernel's bypass of a slow cache device off.
    `split_requests`: requests shorter than a cache block, which dm-cache does not take in at once.
    `knobs`: values that a person asked for, as the kernel takes them; no strategy gets these knobs.
    `suppresses`: settings (`gate`, `streams`) that go back to what they were, whoever wants them.
    """

    strategy: str
    reason: str
    conditions: tuple[Condition, ...] = ()
    gate: Gate | None = None
    sequential_cutoff_bytes: int | None = None
    split_requests: bool = False
    congestion_bypass: bool | None = None
    collect_garbage: bool = False
    unsupported: str = ""
    knobs: tuple[tuple[str, str], ...] = ()
    suppresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What applies after conflicts were resolved, with every proposal, winners and losers."""

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


@dataclass(frozen=True, slots=True)
class Action:
    """One knob to write: nothing is left to choose. Values are what the kernel takes, as text.

    `decision`: the number of the decision behind it, counted by the volume's loop; None: no one's.
    """

    volume: str
    knob: str
    old: str | None
    new: str
    strategy: str
    reason: str
    decision: int | None = None


class OutcomeKind(StrEnum):
    """What became of an action.

    `manual`: somebody else wrote the knob since, so it is left alone until released. `too_soon`:
    the knob was written a moment ago; it may be asked for again.
    """

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    MANUAL = "manual"
    TOO_SOON = "too_soon"
    FAILED = "failed"
    ADVISED = "advised"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An action and its end; `read_back` as the kernel prints the value afterwards."""

    action: Action
    kind: OutcomeKind
    at_ns: int
    read_back: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The value a knob had before the first write of ebbgate, kept until it is restored.

    `last_written`: the first value that ebbgate was about to write when the entry was made; later
    ones are in `store.last_written`. `device_uuid`, `instance`: the device that had the value.
    `device_uuid`: of the bcache backing device, of the cache set or of the mapped device; empty
    where it has none. `instance`: the inode of its folder in sysfs, another one each time the
    kernel makes the device anew; 0 where it is not known.
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
