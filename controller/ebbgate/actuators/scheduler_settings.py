# SPDX-License-Identifier: GPL-2.0-only
"""Keeps the settings of a disk's own I/O scheduler while it has another one. I/O: sysfs.

The kernel makes a new scheduler at each switch, with its own defaults in `queue/iosched`
(block/elevator.c, elevator_switch). So all settings of the disk's own scheduler are journalled as
one text before the first switch, and written again after ebbgate's switch back. Where somebody else
has switched it back, what they have chosen since stays.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Final

from ebbgate.actuators import ownership
from ebbgate.actuators.ownership import Journal, OwnedKnob
from ebbgate.kernel.sysfs import Sysfs, is_gone
from ebbgate.knobs.catalog import ANY_VALUE, IOSCHED, SCHEDULER
from ebbgate.model.decision import JournalEntry

SWITCHED_BACK: Final = (ANY_VALUE, ANY_VALUE)
"""In place of the last two values: from now on the kernel's defaults may be in force, and whoever
finds them puts the settings back.
"""
_SETTING: Final = re.compile(r"([a-z0-9_]+)=(\S+)")
"""No other name leads to a write: a damaged journal may have any text."""


def is_settings(knob: str) -> bool:
    """Is it all that the I/O scheduler of a disk is set to?"""
    return knob.partition(":")[0] == IOSCHED


def settings_knob(scheduler: str) -> str:
    """Return the knob that a switch of this scheduler resets."""
    return f"{IOSCHED}:{scheduler.partition(':')[2]}"


def scheduler_knob(settings: str) -> str:
    """Return the scheduler whose switch resets this knob."""
    return f"{SCHEDULER}:{settings.partition(':')[2]}"


def settings_path(scheduler_path: str) -> str:
    """Return the folder that a switch of the scheduler with this file replaces."""
    return scheduler_path.removesuffix(SCHEDULER) + IOSCHED


def read_settings(sysfs: Sysfs, folder: str) -> str:
    """Return `name=value name=value ...` of all files that may be written.

    Raises OSError: ENOENT where the disk has no scheduler.
    """
    names = sorted(sysfs.names(folder))
    found = [f"{folder}/{name}" for name in names if sysfs.may_be_written(f"{folder}/{name}")]
    if not found:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    return " ".join(f"{path.rpartition('/')[2]}={sysfs.read(path).strip()}" for path in found)


def expect_switch_back(journal: Journal, owned: OwnedKnob | None) -> None:
    """Note, before the disk's own scheduler is chosen again, that its settings are to be put back.

    Wherever this process is killed, a restore finds it.
    """
    if owned is not None:
        owned.written, owned.tried = SWITCHED_BACK
        with suppress(OSError):
            journal.writing(owned.entry, *SWITCHED_BACK)


def is_switched_back(ours: Collection[str] | None) -> bool:
    """Tell from the last two values whether ebbgate may have chosen the disk's scheduler again."""
    return ours is not None and set(ours) == {ANY_VALUE}


def put_back(
    sysfs: Sysfs, entry: JournalEntry, write_slowly: Callable[[Callable[[], None]], None]
) -> bool:
    """Write the settings that differ; return whether any did. Raises OSError after all were tried.

    A setting that the scheduler does not have now, and any of another disk, is left out.
    """
    if ownership.is_recreated(sysfs, entry):
        return False
    found = filter(None, map(_SETTING.fullmatch, entry.original.split()))
    wanted = [(f"{entry.path}/{each[1]}", each[2]) for each in found]
    differ = [(path, value) for path, value in wanted if _differs(sysfs, path, value)]
    if differ:
        write_slowly(lambda: _write(sysfs, differ))
    return bool(differ)


def _differs(sysfs: Sysfs, path: str, value: str) -> bool:
    """True also where it cannot be read; False for a setting that is not there."""
    try:
        return sysfs.read(path).strip() != value
    except OSError as error:
        return not is_gone(error)


def _write(sysfs: Sysfs, settings: Sequence[tuple[str, str]]) -> None:
    failures = []
    for path, value in settings:
        try:
            sysfs.write_text(path, value)
        except OSError as error:
            failures.append(error)
    if failures:
        raise failures[0]
