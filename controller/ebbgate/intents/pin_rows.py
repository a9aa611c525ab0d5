# SPDX-License-Identifier: GPL-2.0-only
"""Reads and writes rows of pinned files. I/O: SQLite, on the caller's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ebbgate.errors import UsageError
from ebbgate.intents.arguments import parse_path
from ebbgate.intents.row_values import InvalidRow, name_value, time_value, uuid_value, who_value
from ebbgate.model.pin import Pin
from ebbgate.units import INT64_MAX

PINS_MAX: Final = 256
_LOAD: Final = f"""
    SELECT id, volume, path, inode, generation, who, at_unix_ns, mount, device_uuid FROM pins
    WHERE ended_unix_ns IS NULL AND invalid IS NULL ORDER BY id LIMIT {PINS_MAX}
"""
_ADD: Final = """
    INSERT INTO pins (volume, path, inode, generation, who, at_unix_ns, mount, device_uuid)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_PLACE: Final = "UPDATE pins SET volume = ?, device_uuid = ?, mount = ? WHERE id = ?"
_END: Final = """
    UPDATE pins SET ended_unix_ns = ?, outcome = ? WHERE id = ? AND ended_unix_ns IS NULL
"""
_SET_ASIDE: Final = "UPDATE pins SET invalid = ? WHERE id = ?"
_FORGET: Final = """
    DELETE FROM pins WHERE ended_unix_ns IS NOT NULL AND id <=
        (SELECT coalesce(max(id), 0) FROM pins) - 1000
"""


def load(connection: sqlite3.Connection) -> tuple[tuple[Pin, ...], dict[int, str]]:
    """Return the pins in force, and why other rows are invalid, by number."""
    found: list[Pin] = []
    wrong: dict[int, str] = {}
    for row in connection.execute(_LOAD).fetchall():
        try:
            found.append(_pin(row))
        except InvalidRow as error:
            wrong[row["id"]] = str(error)
    return tuple(found), wrong


def add(connection: sqlite3.Connection, pin: Pin) -> Pin:
    """Insert a pin; return it with its number."""
    row = (
        *(pin.volume, pin.path, pin.inode, pin.generation),
        *(pin.who, pin.at_unix_ns, pin.mount, pin.device_uuid),
    )
    number = connection.execute(_ADD, row).lastrowid
    assert number is not None
    return replace(pin, id=number)


def place(connection: sqlite3.Connection, pins: Iterable[Pin]) -> None:
    """Store the name and the uuid of the volume of each pin, and its mount."""
    rows = [(pin.volume, pin.device_uuid, pin.mount, pin.id) for pin in pins]
    connection.executemany(_PLACE, rows)


def end(connection: sqlite3.Connection, ended: Mapping[int, str], wall_ns: int) -> None:
    """End pins, given by number with a reason."""
    connection.executemany(_END, [(wall_ns, why, number) for number, why in ended.items()])
    connection.execute(_FORGET)


def set_aside(connection: sqlite3.Connection, wrong: Mapping[int, str]) -> None:
    """Mark invalid rows, so that each is reported once."""
    connection.executemany(_SET_ASIDE, [(why, number) for number, why in wrong.items()])


def _pin(row: sqlite3.Row) -> Pin:
    generation, mount = row["generation"], row["mount"]
    return Pin(
        volume=name_value(row["volume"], "volume"),
        path=_path(row["path"], "path"),
        inode=_number(row["inode"], "inode"),
        generation=None if generation is None else _number(generation, "generation"),
        who=who_value(row["who"]),
        at_unix_ns=time_value(row["at_unix_ns"], "at_unix_ns"),
        mount=None if mount is None else _path(mount, "mount"),
        id=row["id"],
        device_uuid=uuid_value(row["device_uuid"]),
    )


def _path(value: Any, column: str) -> str:
    try:
        return parse_path(value)
    except UsageError as error:
        raise InvalidRow(f"{column}: {error.message}") from error


def _number(value: Any, column: str) -> int:
    if not isinstance(value, int) or not 0 <= value <= INT64_MAX:
        raise InvalidRow(f"{column}: not a whole number")
    return value
