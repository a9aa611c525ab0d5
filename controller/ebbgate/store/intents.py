# SPDX-License-Identifier: GPL-2.0-only
"""What people want: rows that a person adds and the daemon carries out. I/O: SQLite.

kind       args                 meaning
mode       {"mode": "enforce"}  how far ebbgate may go with the volume; outlives the daemon
hold       {"on": true}         freeze everything where it is (no volume: every one)
restore    {}                   put the originals back and stay in `advise` (no volume: every one)
clean      {"within_ns": N}     have dm-cache's cleaner write everything back, for so long at most
set        {"knob": K,          a knob keeps this value (as the kernel takes it), for so long or
            "value": V,         until it is released; no strategy gets it meanwhile
            "for_ns": N}
drain      {"for_ns": N}        open the gate so far that all is clean within this time
release    {"knob": K}          give a manual knob back to ebbgate, end wishes for it (no knob: all)
apply      {"id": "EBB-206"}    set what an advice says, which must hold now, until it is released
undo       {"action_id": N}     what the knob was before this knob write, as a `set` without an end
policy_save
           {"name": N,          keep a policy as NAME.yaml and follow it at once
            "text": T}
policy_remove
           {"name": N}          take NAME.yaml away; what it said stays in NAME.yaml~

`ebbgate.intents.validation` has each of them word by word. Those that last (hold, set, drain, and
what apply and undo set) are kept as wishes, which outlive the daemon.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Final, Self

from ebbgate.model.volume import Mode
from ebbgate.model.wish import IntentKind, Wish, WishKind
from ebbgate.store import access
from ebbgate.store.connection import open_in_memory, open_writer, transaction
from ebbgate.store.documents import to_json
from ebbgate.store.schema import INTENTS


@dataclass(frozen=True, slots=True)
class Intent:
    """One wish; `ok` and `outcome` are None until the daemon has dealt with it.

    `kind`: a plain text where a newer ebbgate has asked for what this one does not know.
    """

    id: int
    kind: IntentKind | str
    volume: str | None
    args: dict[str, Any]
    who: str
    at_unix_ns: int
    ok: bool | None
    outcome: str | None


_ADD: Final = "INSERT INTO intents (kind, volume, args, who, at_unix_ns) VALUES (?, ?, ?, ?, ?)"
_RESOLVE: Final = "UPDATE intents SET resolved_unix_ns = ?, ok = ?, outcome = ? WHERE id = ?"
_SET_MODE: Final = """
    INSERT INTO modes (volume, mode, at_unix_ns) VALUES (?, ?, ?)
    ON CONFLICT (volume) DO UPDATE SET mode = excluded.mode, at_unix_ns = excluded.at_unix_ns
"""
_WISH_COLUMNS: Final = "id, kind, volume, knob, value, who, at_unix_ns, until_unix_ns"
_ADD_WISH: Final = """
    INSERT INTO wishes (kind, volume, knob, value, who, at_unix_ns, until_unix_ns)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_END_SAME: Final = """
    UPDATE wishes SET ended_unix_ns = ?, outcome = ?
    WHERE volume = ? AND kind = ? AND knob = ? AND ended_unix_ns IS NULL
"""
_END_WISH: Final = """
    UPDATE wishes SET ended_unix_ns = ?, outcome = ? WHERE id = ? AND ended_unix_ns IS NULL
"""


class Intents:
    """The intents database. Any thread may call it; a lock lets one in at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = RLock()
        self._seen_version: int | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or make the file (`intents.db`). Raises PermissionDenied and Unavailable."""
        return cls(open_writer(path, INTENTS, access.WRITE_MODE))

    @classmethod
    def in_memory(cls) -> Self:
        """Without a file: nobody asks for anything, and nothing is kept."""
        return cls(open_in_memory(INTENTS))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def add_intent(
        self,
        kind: IntentKind,
        volume: str | None,
        args: Mapping[str, Any],
        who: str,
        wall_ns: int,
    ) -> int:
        """Ask for something; returns the number to follow with `get`."""
        row = (str(kind), volume, to_json(args), who, wall_ns)
        with self._lock, transaction(self._connection) as open_:
            number = open_.execute(_ADD, row).lastrowid
        assert number is not None
        self._seen_version = None
        return number

    def pending(self) -> tuple[Intent, ...]:
        """What nobody has dealt with, oldest first. Costs microseconds while nobody asks anything.

        `data_version` changes when another connection commits, so most calls read no page at all.
        """
        with self._lock:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._seen_version:
                return ()
            rows = self._connection.execute(
                "SELECT * FROM intents WHERE resolved_unix_ns IS NULL ORDER BY id"
            ).fetchall()
            # While something waits, keep looking: the caller may be slow in resolving it.
            self._seen_version = None if rows else version
        return tuple(_intent(row) for row in rows)

    def resolve(self, number: int, outcome: str, ok: bool, wall_ns: int | None = None) -> None:
        """Say what became of an intent, in one sentence for the person who asked."""
        now = time.time_ns() if wall_ns is None else wall_ns
        with self._lock, transaction(self._connection) as open_:
            open_.execute(_RESOLVE, (now, ok, outcome, number))

    def get(self, number: int) -> Intent | None:
        """One intent as it is now."""
        with self._lock:
            row = self._connection.execute(
                "SELECT * FROM intents WHERE id = ?", (number,)
            ).fetchone()
        return _intent(row) if row else None

    # ---- wishes that last ----------------------------------------------------------------------
    def add_wish(self, wish: Wish) -> Wish:
        """Keep a wish, which gets its number; an older one for the same ends with it."""
        same = (wish.volume, str(wish.kind), wish.knob)
        ended = (wish.at_unix_ns, f"replaced by a newer wish of {wish.who}", *same)
        row = (
            str(wish.kind),
            wish.volume,
            wish.knob,
            wish.value,
            wish.who,
            wish.at_unix_ns,
            wish.until_unix_ns,
        )
        with self._lock, transaction(self._connection) as open_:
            open_.execute(_END_SAME, ended)
            number = open_.execute(_ADD_WISH, row).lastrowid
        assert number is not None
        return replace(wish, id=number)

    def end_wish(self, number: int, outcome: str, wall_ns: int | None = None) -> None:
        """A wish is over; `outcome`: what became of it, in a sentence."""
        now = time.time_ns() if wall_ns is None else wall_ns
        with self._lock, transaction(self._connection) as open_:
            open_.execute(_END_WISH, (now, outcome, number))

    def wishes(self) -> tuple[Wish, ...]:
        """Every wish that is in force, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                f"SELECT {_WISH_COLUMNS} FROM wishes WHERE ended_unix_ns IS NULL ORDER BY id"
            ).fetchall()
        return tuple(_wish(row) for row in rows)

    # ---- modes ---------------------------------------------------------------------------------
    def set_mode(self, volume: str, mode: Mode, wall_ns: int | None = None) -> None:
        """Remember the mode that a person chose; it outlives the daemon and beats the settings."""
        now = time.time_ns() if wall_ns is None else wall_ns
        with self._lock, transaction(self._connection) as open_:
            open_.execute(_SET_MODE, (volume, str(mode), now))

    def modes(self) -> dict[str, str]:
        """The mode that a person chose last, per volume."""
        with self._lock:
            rows = self._connection.execute("SELECT volume, mode FROM modes").fetchall()
        return {row["volume"]: row["mode"] for row in rows}


def _wish(row: sqlite3.Row) -> Wish:
    return Wish(**{**dict(row), "kind": WishKind(row["kind"])})


def _intent(row: sqlite3.Row) -> Intent:
    return Intent(
        id=row["id"],
        kind=IntentKind(row["kind"]) if row["kind"] in tuple(IntentKind) else str(row["kind"]),
        volume=row["volume"],
        args=_args(row["args"]),
        who=row["who"],
        at_unix_ns=row["at_unix_ns"],
        ok=None if row["ok"] is None else bool(row["ok"]),
        outcome=row["outcome"],
    )


def _args(text: str) -> dict[str, Any]:
    """Nothing for a row that something else has written wrongly: it is answered as unknown."""
    try:
        args = json.loads(text)
    except ValueError:
        return {}
    return args if isinstance(args, dict) else {}
