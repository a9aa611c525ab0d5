# SPDX-License-Identifier: GPL-2.0-only
"""Checks values of rows that another version or a person may have written. Pure."""

from __future__ import annotations

from typing import Any, Final

from ebbgate.intents.protocol import NAME_LENGTH_MAX
from ebbgate.text import clean_text
from ebbgate.units import NS_PER_S

_WHO_MAX: Final = 256
_TIME_MAX: Final = 4_102_444_800 * NS_PER_S
"""The year 2100; later times are invalid."""


class InvalidRow(ValueError):
    """A row is invalid, with the reason."""


def name_value(value: Any, column: str, length_max: int = NAME_LENGTH_MAX) -> str:
    """Return a short text. Raises InvalidRow."""
    if not isinstance(value, str):
        raise InvalidRow(f"{column}: not a text")
    if not value or len(value) > length_max:
        raise InvalidRow(f"{column}: not 1 to {length_max} characters")
    if clean_text(value) != value or "\ufffd" in value:
        raise InvalidRow(f"{column}: has an invalid character")
    return value


def who_value(value: Any) -> str:
    """Return who made a request. Raises InvalidRow."""
    return name_value(value, "who", _WHO_MAX)


def uuid_value(value: Any) -> str:
    """Return the uuid of a device, or an empty text where it is unknown. Raises InvalidRow."""
    return "" if value == "" else name_value(value, "device_uuid")


def time_value(value: Any, column: str) -> int:
    """Return a time of the wall clock. Raises InvalidRow."""
    if not isinstance(value, int):
        raise InvalidRow(f"{column}: not a whole number")
    if not 0 < value < _TIME_MAX:
        raise InvalidRow(f"{column}: not a time between 1970 and 2100")
    return value
