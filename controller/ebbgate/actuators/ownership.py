# SPDX-License-Identifier: GPL-2.0-only
"""Tells who wrote the value that a journalled knob has, and whether its device is the same.

I/O: reads of sysfs and device-mapper. The rules of every restore, with and without a daemon:

- Only ENOENT and ENXIO mean that a device or a knob is gone. After any other error nothing is
  known: the original stays in the journal, and the error is reported.
- A device is identified by its uuid and by the inode of its folder in sysfs. The kernel never uses
  an inode number there twice in one boot, so a device that was stopped and registered again, with
  the kernel's own values, has another one; so has another device under the same name.
- A knob gets its original only while it has a value that ebbgate wrote: the last one, or the one
  before where the last write may have failed. Any other value is somebody else's and stays. A
  write by somebody else of the same value cannot be detected: the kernel keeps no time of a write
  to such a file and sends no event.
- Knobs that the kernel writes itself get their original in any case.

The kernel has no call that compares and writes in one step, so an administrator's write within the
microseconds between check and write is overwritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ebbgate.kernel.sysfs import BLOCK, DM_PREFIX, Sysfs, is_gone
from ebbgate.knobs.catalog import knob_row, same_value
from ebbgate.knobs.knob import ResetCause, parse_value
from ebbgate.model.decision import JournalEntry

_SETS: Final = Path("/sys/fs/bcache")


class Identity(NamedTuple):
    """A device. `uuid`: empty where it has none; `instance`: its inode, 0 where unknown."""

    uuid: str
    instance: int


class Owner(StrEnum):
    """Who wrote the value that a knob has.

    `original`: the value from before ebbgate; `ours`: ebbgate; `foreign`: somebody else;
    `unknown`: not the original, and the last value of ebbgate is unknown; `gone`: the device is
    gone, or was created again with the kernel's own values.
    """

    ORIGINAL = "original"
    OURS = "ours"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Found:
    """A knob as it is now. `path`: where it is; `value`: in the kernel's unit."""

    owner: Owner
    path: str = ""
    value: str = ""
    why: str = ""


GONE: Final = Found(Owner.GONE, why="the device is gone")
RECREATED: Final = Found(Owner.GONE, why="the device was created again, with the kernel's values")


ALREADY_ORIGINAL: Final = "it already has its original value"
OTHER_TABLE: Final = "another table was loaded since"
_VALUE_CHARS: Final = 40


def short(value: str, chars: int = _VALUE_CHARS) -> str:
    """Shorten a value for people: a table is long, and so is what a scheduler is set to."""
    return value if len(value) <= chars else f"{value[:chars]}..."


def changed_by_others(value: str) -> str:
    """Return why a knob with a value of somebody else is not restored."""
    return f"somebody else has changed it to {short(value)}: left unchanged"


def last_write_lost(value: str, original: str) -> str:
    """Return why a knob is not restored of which the last written value is unknown."""
    todo = f"set it to {short(original)} by hand, then run ebbgate restore"
    return f"it is {short(value)}, and the value that ebbgate wrote last is unknown: {todo}"


def changed_by_kernel(value: str) -> str:
    """Return why a write failed after which the kernel shows another value."""
    return f"the kernel changed it to {short(value)}"


def identify(sysfs: Sysfs, path: Path | str) -> Identity:
    """Return the device of a knob. Raises OSError, also where the device is gone."""
    text = str(path)
    if text.startswith(DM_PREFIX):
        device = sysfs.dm_device(text)
        number = f"{device.devno[0]}:{device.devno[1]}"
        return Identity(device.uuid, sysfs.inode(Path("/sys/dev/block") / number) or 0)
    folder = _folder(Path(text))
    instance = sysfs.inode_of(folder)
    if folder.parent == _SETS:
        return Identity(folder.name, instance)
    uuid = _optional(sysfs, folder / "backing_dev_uuid") or _optional(sysfs, folder / "dm/uuid")
    return Identity(uuid, instance)


def has_instance(sysfs: Sysfs, path: str, devno: tuple[int, int], entry: JournalEntry) -> bool:
    """Whether the device at this path is still the journalled one; true where that is unknown.

    One stat, for the moment before an urgent write: `identify` reads the uuid, which takes the lock
    of bcache, or queries device-mapper. `devno`: of the volume.
    """
    if not entry.instance:
        return True
    if path.startswith(DM_PREFIX):
        return sysfs.inode(f"/sys/dev/block/{devno[0]}:{devno[1]}") == entry.instance
    return sysfs.inode(_folder(Path(path))) == entry.instance


def is_recreated(sysfs: Sysfs, entry: JournalEntry) -> bool:
    """Is there another device under the path of a journalled knob? False where it is unknown.

    Takes no lock of bcache.
    """
    try:
        if entry.path.startswith(DM_PREFIX):
            now = identify(sysfs, entry.path).instance
        else:
            now = sysfs.inode_of(_folder(Path(entry.path)))
        return entry.instance not in (0, now)
    except OSError:
        return False


def was_reset(sysfs: Sysfs, entry: JournalEntry, value: str) -> bool:
    """Has the disk of a journalled knob been reset, or has another device its path?"""
    row = knob_row(entry.knob)
    if ResetCause.DISK in row.resets and same_value(entry.knob, entry.original, value):
        return True
    return is_recreated(sysfs, entry)


def loaded_table(sysfs: Sysfs, path: str) -> str:
    """Return the parameters of the table that device-mapper has loaded. Raises OSError."""
    return sysfs.read(path).split(maxsplit=3)[-1]


def inspect(sysfs: Sysfs, entry: JournalEntry, ours: Collection[str] | None) -> Found:
    """Return who wrote the value of a knob that has an open entry of this boot.

    `ours`: the values that it may have from ebbgate; None where they are unknown. Raises OSError
    where the kernel does not answer.
    """
    try:
        path = _path_now(sysfs, entry)
        if path is None:
            return RECREATED
        value = parse_value(knob_row(entry.knob).form, sysfs.read(path))
    except OSError as error:
        if is_gone(error):
            return GONE
        raise
    return Found(_owner(entry, ours, value), path, value)


def _owner(entry: JournalEntry, ours: Collection[str] | None, value: str) -> Owner:
    if knob_row(entry.knob).kernel_writes:
        return Owner.OURS
    known = (entry.last_written,) if ours is None else ours
    # Before the original: a rounded value may match both.
    if any(same_value(entry.knob, each, value) for each in known if each != entry.original):
        return Owner.OURS
    if same_value(entry.knob, entry.original, value):
        return Owner.ORIGINAL
    return Owner.UNKNOWN if ours is None else Owner.FOREIGN


def _path_now(sysfs: Sysfs, entry: JournalEntry) -> str | None:
    """Return the knob's path now; None where its device was created again. Raises OSError."""
    wanted = Identity(entry.device_uuid, entry.instance)
    if not wanted.instance:
        # Only the path is known of this device.
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
    """Return the knob's path under another name of its device; None where there is none."""
    for other in _namesakes(sysfs, path):
        try:
            if other != path and _same(identify(sysfs, other), wanted):
                return other
        except OSError as error:
            if not is_gone(error):
                raise
    return None


def _same(found: Identity, wanted: Identity) -> bool:
    """Is it the same instance of the same device? A device may get its uuid later."""
    known = bool(found.uuid and wanted.uuid)
    return found.instance == wanted.instance and (not known or found.uuid == wanted.uuid)


def _optional(sysfs: Sysfs, path: Path) -> str:
    """Return the text of a file that may be missing; then empty."""
    try:
        return sysfs.read(path).strip()
    except OSError as error:
        if is_gone(error):
            return ""
        raise


def _namesakes(sysfs: Sysfs, path: str) -> list[str]:
    """Return the path of the same knob for every device of the kind."""
    if path.startswith(DM_PREFIX):
        knob = path.rpartition("/")[2]
        return [f"{DM_PREFIX}{name}/{knob}" for name in sysfs.dm_names()]
    if not Path(path).is_relative_to(BLOCK):
        return []
    name, _, rest = str(Path(path).relative_to(BLOCK)).partition("/")
    kind = name.rstrip("0123456789")
    return [str(found) for found in sysfs.glob(f"{BLOCK}/{kind}*/{rest}")]


def _folder(path: Path) -> Path:
    """Return the folder in sysfs that is created and removed with the device."""
    for top in (_SETS, BLOCK):
        if path.is_relative_to(top):
            folder = top / path.relative_to(top).parts[0]
            return folder / "bcache" if path.parent == folder / "bcache" else folder
    return path.parent


class Claims(Protocol):
    """Keeps which volumes have changed each knob (store.journal_claims).

    `disclaim` and `of_others` are for knobs of a disk; all but these and `reclaim` are for knobs of
    a cache set.
    """

    @property
    def turn(self) -> AbstractContextManager[object]:
        """Held while a knob is compared, written or restored. Not while the journal is."""

    def disclaim(self, entry: JournalEntry) -> bool:
        """Give up a claim; true if another volume has one on the same knob and will restore it."""

    def of_others(self, entry: JournalEntry) -> tuple[str, ...]:
        """Return what other volumes have written to the same knob, but the original."""

    def reclaim(self, entry: JournalEntry) -> None:
        """Take back the claim that `disclaim` gave up."""

    def want(self, entry: JournalEntry, value: str, *, by_person: bool) -> str:
        """Note what a volume wants, in `turn`; return the volume whose override holds instead."""

    def unpin(self, entry: JournalEntry) -> None:
        """Note that the override of a volume is over; its value stays wanted until released."""

    def replaced_by(self, entry: JournalEntry) -> str:
        """Return the volume whose override is newer than the one of this volume; or empty."""

    def successor(self, entry: JournalEntry) -> tuple[JournalEntry, str] | None:
        """Return whose value is in force without this claim; None: the original. In `turn`."""

    def present(self, entry: JournalEntry) -> tuple[str, ...]:
        """Return the values that the knob may have if nobody else wrote it."""

    def expect(self, entry: JournalEntry, values: Iterable[str]) -> None:
        """Note the values that the knob may have from now on, until somebody else writes it."""


class Journal(Protocol):
    """Keeps originals (store.journal_writer)."""

    @property
    def claims(self) -> Claims:
        """The claims of all volumes on the knobs that they share."""

    def put(self, entry: JournalEntry) -> JournalEntry:
        """Make an original durable and return the entry in force. Raises OSError."""

    def replace(self, entry: JournalEntry, older: JournalEntry, values: tuple[str, str]) -> None:
        """Replace the original of a knob; durable on return. Raises OSError: then `older` stays.

        Writes may be recorded for `older` until `forget`. `values`: what the knob may have
        meanwhile, besides what is recorded for `older`.
        """

    def forget(self, older: JournalEntry) -> None:
        """Forget an entry that was replaced: no more writes are recorded for it."""

    def writing(self, entry: JournalEntry, new: str, before: str) -> None:
        """Record that a value is about to be written. Raises OSError: then do not write it. Never
        waits.
        """

    def close(self, volume: str, knob: str, how: str) -> None:
        """Close the entry: the original is back, or must not be put back any more."""


@dataclass(slots=True)
class OwnedKnob:
    """A knob that ebbgate has written: its journal entry and the last value, in the kernel's unit.

    `tried`: a value whose write failed; the knob may have it nevertheless. `owned_since_ns`: when
    the original was journalled. `unwritten`: it is journalled only, and `written` is the original.
    `table`: of dm-cache's threshold, the parameters of the table that the original belongs to;
    empty where they could not be read: then no other table is noticed.
    """

    entry: JournalEntry
    written: str
    owned_since_ns: int
    tried: str | None = None
    unwritten: bool = False
    table: str = ""

    @property
    def original(self) -> str:
        """The value that the knob had before ebbgate wrote it."""
        return self.entry.original

    @property
    def ours(self) -> tuple[str, ...]:
        """The values that the knob may have if nobody else wrote it."""
        return (self.written,) if self.tried is None else (self.written, self.tried)

    def is_ours(self, value: str) -> bool:
        """Is this a value that ebbgate wrote?"""
        return any(same_value(self.entry.knob, each, value) for each in self.ours)
