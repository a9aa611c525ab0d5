# SPDX-License-Identifier: GPL-2.0-only
"""What is known of a kernel knob, and how the kernel prints its value. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ebbgate import units
from ebbgate.model.volume import Kind


class KnobPlace(StrEnum):
    """Where the knob is: a folder of sysfs, or a message to a dm volume."""

    BACKING = "backing device"
    CACHE_SET = "cache set"
    CACHE_SET_INTERNAL = "cache set, internal"
    QUEUE = "queue of the volume"
    MESSAGE = "device-mapper message"
    DISK = "disk below the volume"
    DISK_QUEUE = "queue of a disk below the volume"


class ValueForm(StrEnum):
    """How the kernel prints the value.

    `plain`: as it is taken; `size`: rounded bytes (`4.0M`), taken in bytes; `rate`: rounded bytes
    per second, taken in sectors per second; `choice`: all words, the current one in brackets;
    `folder`: a file for each setting, read as `name=value name=value`; `unreadable`: not printed.
    """

    PLAIN = "plain"
    SIZE = "size"
    RATE = "rate"
    CHOICE = "choice"
    FOLDER = "folder"
    UNREADABLE = "unreadable"

    @property
    def rounded(self) -> bool:
        """Is the printed value only good to one decimal?"""
        return self in (ValueForm.SIZE, ValueForm.RATE)


class KnobUnit(StrEnum):
    """What the kernel counts a knob in."""

    PERCENT = "percent"
    BYTES = "bytes"
    KIB = "KiB"
    SECTORS = "sectors of 512 bytes"
    SECTORS_PER_S = "sectors of 512 bytes a second"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"
    FLAG = "0 or 1"
    NUMBER = "a plain number"
    WORD = "a word"


class ResetCause(StrEnum):
    """What makes the kernel drop a value that was written."""

    KERNEL = "the kernel's own writes"
    TABLE = "another table"
    REGISTRATION = "registration"
    DISK = "a reset of the disk"
    REBOOT = "reboot"


@dataclass(frozen=True, slots=True)
class KnobBounds:
    """The range that ebbgate writes, in the knob's unit. `why`: what happens outside it; `source`:
    where the kernel says so.
    """

    low: int
    high: int
    why: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting of the kernel: everything that ebbgate knows of it.

    `kinds`: the caches that have it. A knob of a disk has a name for each disk: `queue_depth:sda`.
    `about`: what it does, for lists; `purpose`: what ebbgate writes it for.
    `resets`: empty where the value is kept on the disk or never changes.
    `bounds`: None for a knob that ebbgate only shows; `words`: what it writes in place of numbers;
    `never`: why ebbgate never writes it.
    `interval_ns`: the shortest time between two writes; 0 for a gate, whose close a request waits
    for. A restore never waits.
    `gate`: driven with the other knobs of the gate, which make sense only together.
    `trigger`: a write starts something and leaves no value behind: nothing to journal.
    `verified`: looked at before and after each write. Not a knob that is written many times a
    second (it is compared once a second instead), nor a table (it is taken whole or refused).
    `listed`: shown with the volume; false for what only `ebbgate clean` writes, and what is only
    put back.
    """

    name: str
    kinds: frozenset[Kind]
    place: KnobPlace
    form: ValueForm = ValueForm.PLAIN
    unit: KnobUnit
    about: str
    purpose: str = ""
    resets: frozenset[ResetCause]
    bounds: KnobBounds | None = None
    words: tuple[str, ...] = ()
    interval_ns: int = 0
    never: str = ""
    gate: bool = False
    trigger: bool = False
    verified: bool = True
    listed: bool = True

    @property
    def settable(self) -> bool:
        """May a person set it through ebbgate?"""
        return self.bounds is not None

    @property
    def written(self) -> bool:
        """Does ebbgate write it, in enforce or at a person's request?"""
        return self.settable or bool(self.words) or not self.listed

    @property
    def kernel_writes(self) -> bool:
        """Does the kernel change it by itself? Then a foreign value has no owner."""
        return ResetCause.KERNEL in self.resets

    @property
    def per_disk(self) -> bool:
        """Has each disk below the volume one of its own?"""
        return self.place in (KnobPlace.DISK, KnobPlace.DISK_QUEUE)

    @property
    def set_wide(self) -> bool:
        """Does it keep one value for all volumes of a cache set?"""
        in_set = self.place in (KnobPlace.CACHE_SET, KnobPlace.CACHE_SET_INTERNAL)
        return in_set and not self.trigger

    @property
    def key(self) -> str:
        """What names it in the catalogue: a knob of a disk ends in a colon."""
        return f"{self.name}:" if self.per_disk else self.name

    @property
    def readable(self) -> bool:
        """Does the kernel print its value?"""
        return self.form is not ValueForm.UNREADABLE

    @property
    def journalled(self) -> bool:
        """Is its original kept before the first write, and put back?"""
        return self.written and not self.trigger


def parse_value(form: ValueForm, text: str) -> str:
    """Convert what the kernel prints into the unit in which it takes the value.

    Odd text stays as it is. A rounded value is exact to 5 %.
    """
    try:
        if form is ValueForm.CHOICE:
            return chosen_word(text) or text
        if form is ValueForm.SIZE:
            return str(units.parse_hprint(text))
        if form is ValueForm.RATE:
            return str(units.bytes_to_sectors(units.parse_hprint(text)))
    except ValueError:
        return text
    return text.strip()


def chosen_word(text: str) -> str | None:
    """Return the word in brackets of `writethrough [writeback] writearound none`."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return None
