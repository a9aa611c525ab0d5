# SPDX-License-Identifier: GPL-2.0-only
"""What is said of a volume without a recent status: who has set its knobs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate.cli import format
from ebbgate.cli.daemon_status import Link

_ROOT_KNOWS: Final = "only root can see whether knobs still have values from ebbgate"


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """`mode`: for the heading, where the mode is else. `why`: a part of a sentence."""

    mode: str
    why: str


def unmanaged(link: Link, volume: str) -> Unmanaged:
    """Return what is known of a volume that has no recent status."""
    if link.alive:
        return _with_daemon(link, volume)
    left = sum(entry.volume == volume for entry in link.left_behind)
    if left:
        count = "1 knob still has a value" if left == 1 else f"{left} knobs still have values"
        return Unmanaged("no daemon", f"not managed by ebbgated; {count} from ebbgate")
    if link.alive is None or not link.left_behind_known:
        return Unmanaged("no daemon", f"not managed by ebbgated; {_ROOT_KNOWS}")
    return Unmanaged("no daemon", "not managed by ebbgated, the kernel's settings apply")


def _with_daemon(link: Link, volume: str) -> Unmanaged:
    last = link.statuses.volumes.get(volume)
    if last is not None:
        ago = format.span(abs(link.now_ns - last.at_unix_ns))
        text = f"what ebbgated does with it is unknown: its last status is {ago} old"
        return Unmanaged("mode unknown", text)
    if link.lags or not link.answers:
        return Unmanaged("mode unknown", "ebbgated has given no status of it")
    return Unmanaged("not followed", "not managed by ebbgated, the kernel's settings apply")
