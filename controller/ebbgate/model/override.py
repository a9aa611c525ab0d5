# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of requests, and overrides: requests that last. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class IntentKind(StrEnum):
    """What a person may request."""

    MODE = "mode"
    HOLD = "hold"
    RESTORE = "restore"
    CLEAN = "clean"
    SET = "set"
    DRAIN = "drain"
    RELEASE = "release"
    APPLY = "apply"
    UNDO = "undo"
    POLICY_SAVE = "policy_save"
    POLICY_REMOVE = "policy_remove"
    WARM = "warm"
    JOB = "job"
    HOT = "hot"
    PIN = "pin"
    UNPIN = "unpin"
    FORGET = "forget"


class OverrideKind(StrEnum):
    """`set`: a knob keeps a value; `drain`: all is clean by a time; `hold`: every knob stays;
    `manual`: somebody wrote a knob without ebbgate, which leaves it alone.
    """

    SET = "set"
    DRAIN = "drain"
    HOLD = "hold"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Override:
    """A request that lasts. Times are of the wall clock; `until_unix_ns`: None until released.

    `id`: 0 before it is kept. `knob`, `value`: of a `set` and a `manual`, as the kernel takes it;
    else empty. `device_uuid`: of the volume (Volume.uuid); empty while it is unknown.
    """

    kind: OverrideKind
    volume: str
    who: str
    at_unix_ns: int
    until_unix_ns: int | None = None
    knob: str = ""
    value: str = ""
    id: int = 0
    device_uuid: str = ""

    @property
    def owner(self) -> str:
        """Return what tells its volume from others: the uuid, or the name where it is unknown."""
        return self.device_uuid or self.volume

    @property
    def for_ns(self) -> int | None:
        """Return how long it was to last; None: until it is released."""
        return None if self.until_unix_ns is None else self.until_unix_ns - self.at_unix_ns


@dataclass(frozen=True, slots=True)
class ActiveOverride:
    """An override in force. `ends_ns`: when it ends, on CLOCK_MONOTONIC of this daemon."""

    override: Override
    ends_ns: int | None

    def left_ns(self, now_ns: int) -> int | None:
        """Return how long it still lasts; None: until it is released."""
        return None if self.ends_ns is None else max(0, self.ends_ns - now_ns)
