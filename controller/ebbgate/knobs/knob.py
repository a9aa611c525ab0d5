# SPDX-License-Identifier: GPL-2.0-only
"""What a knob is, and how the kernel prints its value. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ebbgate import units


class Place(StrEnum):
    """Where the knob is: a folder of sysfs, or a message to a mapped device."""

    BACKING = "backing device"
    SET = "cache set"
    INTERNAL = "cache set, internal"
    QUEUE = "queue of the volume"
    MESSAGE = "device-mapper message"


class Form(StrEnum):
    """How the kernel prints the value.

    `plain`: as it is taken; `size`: rounded bytes (`4.0M`), taken in bytes; `rate`: rounded bytes
    per second, taken in sectors per second; `choice`: all words, the current one in brackets;
    `trigger`: cannot be read, any write acts.
    """

    PLAIN = "plain"
    SIZE = "size"
    RATE = "rate"
    CHOICE = "choice"
    TRIGGER = "trigger"

    @property
    def rounded(self) -> bool:
        """Is what is read back only good to one decimal?"""
        return self in (Form.SIZE, Form.RATE)


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting of the kernel. `tuned`: written in `enforce`, else only shown."""

    name: str
    place: Place
    form: Form
    tuned: bool
    about: str


def parse_value(form: Form, text: str) -> str:
    """What the kernel printed, in the unit in which it takes the value; odd text stays as it is.

    Rounded figures are exact to 5 %; whoever writes such a knob must remember what was written.
    """
    try:
        if form is Form.CHOICE:
            return chosen(text) or text
        if form is Form.SIZE:
            return str(units.parse_hprint(text))
        if form is Form.RATE:
            return str(units.bytes_to_sectors(units.parse_hprint(text)))
    except ValueError:
        return text
    return text.strip()


def chosen(text: str) -> str | None:
    """The word in brackets of `writethrough [writeback] writearound none`."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return None
