# SPDX-License-Identifier: GPL-2.0-only
"""Whose value a journalled knob has now, and whether its device is still the same.

I/O: reads of sysfs and device-mapper.

The rules of every restore, with a daemon and without one:

- ENOENT and ENXIO alone mean that a device or a knob is gone. Any other error means that nothing is
  known: the original is kept, and the error is told.
- A device is known by its uuid and by the inode of its folder in sysfs. The kernel gives each
  object there a new number, never one that was used before in the same boot. So a number tells one
  life of a device from the next: a device that was stopped and registered again has the kernel's
  own values, and another device under the same name or number has its administrator's.
- A knob gets its original only while it has a value that ebbgate wrote: the last one, or the one
  before where it is not sure that the last write took place. Any other value is somebody else's and
  stays. What cannot be seen is a write of somebody else of the very value that ebbgate wrote: the
  kernel keeps no time of a write to such a file, and sends no event.
- Knobs that the kernel writes itself have a value of nobody: they get their original in any case.

Between the look and the write an administrator has some microseconds: the kernel has no call that
compares and writes in one step.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from ebbgate.kernel.sysfs import Sysfs, is_gone
from ebbgate.knobs.catalog import BY_NAME, same_value
from ebbgate.knobs.knob import parse_value
from ebbgate.model.decision import JournalEntry

_BLOCK: Final = Path("/sys/block")
_SETS: Final = Path("/sys/fs/bcache")
_DM: Final = "dm:"


class Identity(NamedTuple):
    """`uuid`: empty where the device has none; `instance`: 0 where the kernel does not say."""

    uuid: str
    instance: int


class Owner(StrEnum):
    """Whose value a knob has.

    `original`: it is as it was before ebbgate; `ours`: a value of ebbgate; `foreign`: one of
    somebody else; `unknown`: not the original, and what ebbgate wrote last is not known; `gone`:
    the device is not there any more, or was made anew with the kernel's own values.
    """

    ORIGINAL = "original"
    OURS = "ours"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Found:
    """A look at a knob. `path`: where it is now; `value`: in the unit in which it is written."""

    owner: Owner
    path: str = ""
    value: str = ""
    why: str = ""


GONE: Final = Found(Owner.GONE, why="the device is gone, and the knob with it")
_ANEW: Final = Found(Owner.GONE, why="the device was made anew since, with the kernel's own values")


def identify(sysfs: Sysfs, path: Path | str) -> Identity:
    """The device to which a knob belongs. Raises OSError, also where the device is gone."""
    text = str(path)
    if text.startswith(_DM):
        device = sysfs.dm_device(text)
        number = f"{device.devno[0]}:{device.devno[1]}"
        return Identity(device.uuid, sysfs.inode(Path("/sys/dev/block") / number) or 0)
    folder = _folder(Path(text))
    instance = sysfs.inode_of(folder)
    if folder.parent == _SETS:
        return Identity(folder.name, instance)
    uuid = _optional(sysfs, folder / "backing_dev_uuid") or _optional(sysfs, folder / "dm/uuid")
    return Identity(uuid, instance)


def look(sysfs: Sysfs, entry: JournalEntry, ours: Collection[str] | None) -> Found:
    """Whose value the knob of an open entry of this boot has now.

    `ours`: the values that it has if nobody else wrote it; None where they are not known. Raises
    OSError where the kernel cannot be asked.
    """
    try:
        path = _path_now(sysfs, entry)
        if path is None:
            return _ANEW
        value = parse_value(BY_NAME[entry.knob].form, sysfs.read(path))
    except OSError as error:
        if is_gone(error):
            return GONE
        raise
    return Found(_owner(entry, ours, value), path, value)


def _owner(entry: JournalEntry, ours: Collection[str] | None, value: str) -> Owner:
    if BY_NAME[entry.knob].kernel_writes:
        return Owner.OURS
    known = (entry.last_written,) if ours is None else ours
    # The exact ones first: a rounded figure may look like the original, too.
    if any(same_value(entry.knob, each, value) for each in known if each != entry.original):
        return Owner.OURS
    if same_value(entry.knob, entry.original, value):
        return Owner.ORIGINAL
    return Owner.UNKNOWN if ours is None else Owner.FOREIGN


def _path_now(sysfs: Sysfs, entry: JournalEntry) -> str | None:
    """Where the knob of that very device is; None where it was made anew. Raises OSError."""
    wanted = Identity(entry.device_uuid, entry.instance)
    if not wanted.instance:
        # Nothing but the path is known of it.
        return entry.path
    try:
        if _same(identify(sysfs, entry.path), wanted):
            return entry.path
    except OSError as error:
        if not is_gone(error):
            raise
        gone: OSError | None = error
    else:
        gone = None
    moved = _moved(sysfs, entry.path, wanted)
    if moved is None and gone is not None:
        raise gone
    return moved


def _moved(sysfs: Sysfs, path: str, wanted: Identity) -> str | None:
    """The same knob of the same device under another name; None where there is no such device."""
    for other in _namesakes(sysfs, path):
        try:
            if other != path and _same(identify(sysfs, other), wanted):
                return other
        except OSError as error:
            if not is_gone(error):
                raise
    return None


def _same(found: Identity, wanted: Identity) -> bool:
    """Is it the same life of the same device? A uuid may be given to a device later."""
    known = bool(found.uuid and wanted.uuid)
    return found.instance == wanted.instance and (not known or found.uuid == wanted.uuid)


def _optional(sysfs: Sysfs, path: Path) -> str:
    """What a file says that not every kernel or device has; empty where it is not there."""
    try:
        return sysfs.read(path).strip()
    except OSError as error:
        if is_gone(error):
            return ""
        raise


def _namesakes(sysfs: Sysfs, path: str) -> list[str]:
    """The same knob of every device of the kind."""
    if path.startswith(_DM):
        knob = path.rpartition("/")[2]
        return [f"{_DM}{name}/{knob}" for name in sysfs.dm_names()]
    if not Path(path).is_relative_to(_BLOCK):
        return []
    name, _, rest = str(Path(path).relative_to(_BLOCK)).partition("/")
    kind = name.rstrip("0123456789")
    return [str(found) for found in sysfs.glob(f"{_BLOCK}/{kind}*/{rest}")]


def _folder(path: Path) -> Path:
    """The folder in sysfs whose making and ending is that of the device."""
    for top in (_SETS, _BLOCK):
        if path.is_relative_to(top):
            folder = top / path.relative_to(top).parts[0]
            return folder / "bcache" if path.parent == folder / "bcache" else folder
    return path.parent
