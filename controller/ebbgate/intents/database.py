# SPDX-License-Identifier: GPL-2.0-only
"""Stores overrides, modes and pins in `overrides.db`, which only root may open. I/O: SQLite.

Overrides are holds, set knobs, drains, and knobs that someone else wrote. An invalid row is
ignored: it stays in the file with the reason in `invalid` and is reported once.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from ebbgate.errors import EbbgateError, PermissionDenied, Unavailable, UsageError
from ebbgate.intents import pin_rows
from ebbgate.intents.arguments import OVERRIDE_NS_MAX
from ebbgate.intents.row_values import (
    InvalidRow,
    name_value,
    time_value,
    uuid_value,
    who_value,
)
from ebbgate.knobs.catalog import find_knob
from ebbgate.knobs.settable import bounded_value, is_trigger, may_be_set
from ebbgate.log_messages.history import OVERRIDES_DAMAGED, OVERRIDES_ROWS_NOT_MARKED
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.pin import Pin
from ebbgate.model.volume import Mode
from ebbgate.store.access import ROOT_MODE
from ebbgate.store.connection import Damaged, durable, is_damage, open_writer
from ebbgate.store.schema import OVERRIDES, OWNER
from ebbgate.text import clean_text

_LOG = logging.getLogger(__name__)
_ENDED_KEPT: Final = 1_000
"""Rows of ended overrides; older ones are deleted to bound the file."""
_ROWS_MAX: Final = 10_000
_COLUMNS: Final = "id, kind, volume, knob, value, who, at_unix_ns, until_unix_ns, device_uuid"
_LOAD: Final = f"""
    SELECT {_COLUMNS} FROM overrides WHERE ended_unix_ns IS NULL AND invalid IS NULL
    ORDER BY id LIMIT {_ROWS_MAX}
"""
_ADD: Final = """
    INSERT INTO overrides (kind, volume, knob, value, who, at_unix_ns, until_unix_ns, device_uuid)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_END_SAME: Final = f"""
    UPDATE overrides SET ended_unix_ns = ?, outcome = ?
    WHERE {OWNER} IN (?, ?) AND kind = ? AND knob = ?
    AND ended_unix_ns IS NULL AND invalid IS NULL
"""
_END: Final = """
    UPDATE overrides SET ended_unix_ns = ?, outcome = ? WHERE id = ? AND ended_unix_ns IS NULL
"""
_REOPEN: Final = "UPDATE overrides SET ended_unix_ns = NULL, outcome = NULL WHERE id = ?"
_SET_ASIDE: Final = "UPDATE overrides SET invalid = ? WHERE id = ?"
_FORGET: Final = """
    DELETE FROM overrides WHERE ended_unix_ns IS NOT NULL AND id <=
        (SELECT coalesce(max(id), 0) FROM overrides) - ?
"""
# A row that cannot be unique there stays as it is: the next load finds it again.
_PLACE: Final = "UPDATE OR IGNORE overrides SET volume = ?, device_uuid = ? WHERE id = ?"
_DROP_MODE: Final = f"DELETE FROM modes WHERE {OWNER} IN (?, ?)"
_SET_MODE: Final = """
    INSERT INTO modes (volume, mode, at_unix_ns, device_uuid) VALUES (?, ?, ?, ?)
"""
_LOAD_MODES: Final = """
    SELECT id AS number, volume, mode, at_unix_ns, device_uuid FROM modes WHERE invalid IS NULL
"""
_DROP_MODE_OF_NAME: Final = """
    DELETE FROM modes WHERE volume = ? AND device_uuid = ''
    AND EXISTS (SELECT 1 FROM modes WHERE device_uuid = ?)
"""
_PLACE_MODE: Final = f"UPDATE modes SET volume = ?, device_uuid = ? WHERE {OWNER} IN (?, ?)"
_SET_MODE_ASIDE: Final = "UPDATE modes SET invalid = ? WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Active overrides and modes. `set_aside`: a text for each invalid row.

    `modes`: by the uuid of the device, or by the volume's name where that is unknown;
    `mode_volumes`: the name that the volume of each had; `mode_times`: when each was chosen, where
    that is known.
    """

    overrides: tuple[Override, ...] = ()
    modes: Mapping[str, Mode] = field(default_factory=dict)
    mode_volumes: Mapping[str, str] = field(default_factory=dict)
    mode_times: Mapping[str, int] = field(default_factory=dict)
    set_aside: tuple[str, ...] = ()


class OverrideDatabase:
    """`overrides.db`, open for reading and writing. One thread at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        # Text that is not UTF-8 must make the row invalid, not raise.
        connection.text_factory = lambda data: data.decode(errors="replace")

    @classmethod
    def open(cls, path: Path, *, heal: bool = True) -> Self:
        """Open or create the file. Raises PermissionDenied and Unavailable.

        A damaged file is renamed to `overrides.db.damaged` unless `heal` is false.
        """
        _check_owner(path)
        try:
            return cls._opened(path)
        except Damaged as error:
            if not heal:
                raise
            aside = path.with_name(f"{path.name}.damaged")
            _LOG.error(OVERRIDES_DAMAGED, error.message, aside)
            path.replace(aside)
            for suffix in ("-wal", "-shm"):
                path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
            return cls._opened(path)

    @classmethod
    def _opened(cls, path: Path) -> Self:
        try:
            opened = cls(open_writer(path, OVERRIDES, ROOT_MODE), path)
        except Unavailable as error:
            if "no such" in str(error.__cause__):
                # A migration has looked for a table or a column that every version has.
                raise Damaged(f"{path} is damaged: {error.__cause__}") from error
            raise
        try:
            opened._check()
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # ---- reading -------------------------------------------------------------------------------
    def load(self) -> Loaded:
        """Return all active overrides and modes; sets invalid rows aside. Raises sqlite3.Error."""
        found: dict[tuple[str, str, str], Override] = {}
        wrong: list[tuple[str, int]] = []
        for row in self._connection.execute(_LOAD).fetchall():
            try:
                each = _override(row)
                key = (each.owner, str(each.kind), each.knob)
                if key in found:
                    raise InvalidRow("there is another one for the same")
                found[key] = each
            except InvalidRow as error:
                wrong.append((str(error), row["id"]))
        modes, wrong_modes = self._modes()
        self._mark(wrong, wrong_modes)
        reports = (*_reports("override", wrong), *wrong_modes)
        return replace(modes, overrides=tuple(found.values()), set_aside=reports)

    def _modes(self) -> tuple[Loaded, dict[str, int]]:
        """Return the modes, and the texts on invalid rows with their numbers."""
        modes: dict[str, Mode] = {}
        names: dict[str, str] = {}
        times: dict[str, int] = {}
        wrong: dict[str, int] = {}
        for row in self._connection.execute(_LOAD_MODES).fetchmany(_ROWS_MAX):
            try:
                name = name_value(row["volume"], "volume")
                owner = uuid_value(row["device_uuid"]) or name
                modes[owner] = Mode(name_value(row["mode"], "mode"))
                names[owner] = name
            except ValueError as error:
                reason = str(error) if isinstance(error, InvalidRow) else "mode: unknown"
                wrong[f"{self._path.name}: mode {row['number']} is set aside: {reason}"] = row[
                    "number"
                ]
                continue
            # Only shown: a mode holds without it.
            with suppress(InvalidRow):
                times[owner] = time_value(row["at_unix_ns"], "at_unix_ns")
        return Loaded(modes=modes, mode_volumes=names, mode_times=times), wrong

    def _mark(self, wrong: Sequence[tuple[str, int]], modes: Mapping[str, int]) -> None:
        """Mark invalid rows, so that each is reported once."""
        if not wrong and not modes:
            return
        try:
            with durable(self._connection) as open_:
                open_.executemany(_SET_ASIDE, wrong)
                open_.executemany(_SET_MODE_ASIDE, modes.items())
        except sqlite3.Error as error:
            _LOG.warning(OVERRIDES_ROWS_NOT_MARKED, self._path, error)

    def _check(self) -> None:
        """Raises Damaged for a file that is not a database of overrides."""
        try:
            self._connection.execute(_LOAD).fetchmany(1)
            self._connection.execute(_LOAD_MODES).fetchmany(1)
        except sqlite3.DatabaseError as error:
            missing = "no such" in str(error)
            if is_damage(error) or missing:
                raise Damaged(f"{self._path} is damaged: {error}") from error
            raise

    def load_pins(self) -> tuple[tuple[Pin, ...], tuple[str, ...]]:
        """Return the pins in force and a text for each invalid row. Raises sqlite3.Error."""
        found, wrong = pin_rows.load(self._connection)
        if wrong:
            with durable(self._connection) as open_:
                pin_rows.set_aside(open_, wrong)
        return found, tuple(_reports("pin", [(why, number) for number, why in wrong.items()]))

    # ---- writing: each call is on the disk when it returns -------------------------------------
    def add(self, overrides: Iterable[Override]) -> tuple[Override, ...]:
        """Store all of them or none; each gets a number and ends an older one for the same.

        Raises sqlite3.Error.
        """
        kept: list[Override] = []
        with durable(self._connection) as open_:
            for each in overrides:
                why = f"replaced by a newer request of {each.who}"
                open_.execute(_END_SAME, (each.at_unix_ns, why, *_same(each)))
                number = open_.execute(_ADD, _row(each)).lastrowid
                assert number is not None
                kept.append(replace(each, id=number))
            open_.execute(_FORGET, (_ENDED_KEPT,))
        return tuple(kept)

    def end(self, ended: Mapping[int, str], wall_ns: int) -> None:
        """End overrides, given by number with a reason. Raises sqlite3.Error."""
        with durable(self._connection) as open_:
            self._end(open_, ended, wall_ns)

    @staticmethod
    def _end(open_: sqlite3.Connection, ended: Mapping[int, str], wall_ns: int) -> None:
        open_.executemany(_END, [(wall_ns, why, number) for number, why in ended.items()])
        open_.execute(_FORGET, (_ENDED_KEPT,))

    def reopen(self, overrides: Iterable[Override]) -> None:
        """Make replaced overrides active again. Raises sqlite3.Error."""
        with durable(self._connection) as open_:
            for each in overrides:
                open_.execute(_END_SAME, (each.at_unix_ns, "taken back", *_same(each)))
                open_.execute(_REOPEN, (each.id,))

    def set_aside(self, number: int, reason: str) -> None:
        """Ignore an override that failed when it was applied. Raises sqlite3.Error."""
        with durable(self._connection) as open_:
            open_.execute(_SET_ASIDE, (reason, number))

    def set_mode(self, volume: str, mode: Mode | None, wall_ns: int, device_uuid: str = "") -> None:
        """Store the mode of a volume; None removes it. Raises sqlite3.Error."""
        with durable(self._connection) as open_:
            open_.execute(_DROP_MODE, (device_uuid or volume, volume))
            if mode is not None:
                open_.execute(_SET_MODE, (volume, str(mode), wall_ns, device_uuid))

    def forget(
        self,
        ended: Mapping[int, str],
        pins: Mapping[int, str],
        owners: tuple[str, str],
        wall_ns: int,
    ) -> None:
        """End overrides and pins, given by number with a reason, and drop the mode of `owners`: all
        or nothing. Raises sqlite3.Error.
        """
        with durable(self._connection) as open_:
            self._end(open_, ended, wall_ns)
            pin_rows.end(open_, pins, wall_ns)
            open_.execute(_DROP_MODE, owners)

    def place(self, overrides: Iterable[Override], modes: Mapping[str, str]) -> None:
        """Store the volume of each override, and the name of each volume that has a mode, by uuid.

        Raises sqlite3.Error.
        """
        rows = [(each.volume, each.device_uuid, each.id) for each in overrides]
        with durable(self._connection) as open_:
            open_.executemany(_PLACE, rows)
            for uuid, name in modes.items():
                open_.execute(_DROP_MODE_OF_NAME, (name, uuid))
                open_.execute(_PLACE_MODE, (name, uuid, uuid, name))

    def add_pin(self, pin: Pin) -> Pin:
        """Store a pin; it gets a number. Raises sqlite3.Error."""
        with durable(self._connection) as open_:
            return pin_rows.add(open_, pin)

    def place_pins(self, pins: Iterable[Pin]) -> None:
        """Store volume and mount of each pin. Raises sqlite3.Error."""
        with durable(self._connection) as open_:
            pin_rows.place(open_, pins)

    def end_pins(self, ended: Mapping[int, str], wall_ns: int) -> None:
        """End pins, given by number with a reason. Raises sqlite3.Error."""
        with durable(self._connection) as open_:
            pin_rows.end(open_, ended, wall_ns)


def _check_owner(path: Path) -> None:
    """Raises PermissionDenied for a file that another user could have written."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise PermissionDenied(
            f"no access to {path}: {error.strerror}", "run this as root"
        ) from error
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
        raise PermissionDenied(
            f"{path} is not a file that belongs to root", f"move it away: mv {path} {path}.foreign"
        )


def _row(override: Override) -> tuple[Any, ...]:
    return (
        str(override.kind),
        override.volume,
        override.knob,
        override.value,
        override.who,
        override.at_unix_ns,
        override.until_unix_ns,
        override.device_uuid,
    )


def _same(override: Override) -> tuple[str, ...]:
    """Return what a row for the same has; one without a uuid is of any volume of its name."""
    return (override.owner, override.volume, str(override.kind), override.knob)


def _reports(what: str, wrong: Sequence[tuple[str, int]]) -> list[str]:
    return [f"overrides.db: {what} {number} is set aside: {why}" for why, number in wrong]


def _override(row: sqlite3.Row) -> Override:
    """Read a row. Raises InvalidRow."""
    if row["kind"] not in tuple(OverrideKind):
        raise InvalidRow("kind: unknown")
    kind = OverrideKind(row["kind"])
    at_ns, until_ns = time_value(row["at_unix_ns"], "at_unix_ns"), row["until_unix_ns"]
    if until_ns is not None:
        until_ns = time_value(until_ns, "until_unix_ns")
        if not 0 < until_ns - at_ns <= OVERRIDE_NS_MAX:
            raise InvalidRow("until_unix_ns: not within 30 days after at_unix_ns")
    elif kind is OverrideKind.DRAIN:
        raise InvalidRow("until_unix_ns: a drain needs one")
    knob, value = _knob(kind, row["knob"], row["value"])
    return Override(
        kind=kind,
        volume=name_value(row["volume"], "volume"),
        who=who_value(row["who"]),
        at_unix_ns=at_ns,
        until_unix_ns=until_ns,
        knob=knob,
        value=value,
        id=row["id"],
        device_uuid=uuid_value(row["device_uuid"]),
    )


def _knob(kind: OverrideKind, knob: Any, value: Any) -> tuple[str, str]:
    """Check knob and value. Raises InvalidRow."""
    if kind in (OverrideKind.HOLD, OverrideKind.DRAIN):
        if knob != "" or value != "":
            raise InvalidRow(f"knob: a {kind} has none")
        return "", ""
    knob, value = name_value(knob, "knob"), name_value(value, "value")
    if kind is OverrideKind.MANUAL:
        if find_knob(knob) is None:
            raise InvalidRow("knob: unknown")
        return knob, value
    if not may_be_set(knob) or is_trigger(knob):
        raise InvalidRow("knob: cannot be overridden")
    try:
        as_written = bounded_value(knob, value)
    except UsageError as error:
        raise InvalidRow(f"value: {clean_text(error.message)}") from error
    if as_written != value:
        raise InvalidRow("value: not in the kernel's form")
    return knob, value


TROUBLE: Final = (sqlite3.Error, OSError, EbbgateError)
"""Errors of any use of the database."""
