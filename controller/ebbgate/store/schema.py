# SPDX-License-Identifier: GPL-2.0-only
"""The schemas of the databases. Pure data.

What a release could have written is never edited: a migration changes it. Wall-clock times are
Unix nanoseconds (`_unix_ns`); `at_ns` is CLOCK_MONOTONIC, comparable within one boot only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Schema:
    """How a new file is made, and how one of an older release is brought up to date.

    `first`: the version that `create` makes; each migration adds one to it.
    """

    create: tuple[str, ...]
    first: int = 1
    migrations: tuple[tuple[str, ...], ...] = ()

    @property
    def version(self) -> int:
        """The version of an up-to-date file."""
        return self.first + len(self.migrations)


# samples: a row of a second, or a roll-up of `samples` of them, together for `covered_ns`; `known`:
# which columns fewer of them know, and how many; `mode` where it was the same throughout (see
# rollup.py); `latency`: the histograms of latency.py, NULL where unknown.
# decisions: `acted`: a knob was written for it, so it is kept longer; `stands`: the first word of
# what each strategy reported that has not written a knob for it yet. The index by time alone is for
# retention.
# actions: one outlives its decision, so that retention may thin decisions out first; `latency_ns`:
# from the edge that caused it to the write.
# rollup_due: buckets that got samples since they were last rolled up.
# tallies: events counted by hour (hourly_counts.py).
# intents: requests of people; `id` is the daemon's number of the request; `resolved_unix_ns`, `ok`
# and `outcome` are NULL while it is pending.
# The first version is 4: development versions before it were never released.
HISTORY: Final = Schema(
    first=4,
    create=(
        """
        CREATE TABLE samples (
            volume TEXT NOT NULL,
            span_ns INTEGER NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            regime TEXT NOT NULL,
            idle INTEGER,
            read_iops REAL,
            read_bytes_per_s REAL,
            write_iops REAL,
            write_bytes_per_s REAL,
            hit_ratio REAL,
            bypass_bytes INTEGER,
            destage_bytes_per_s REAL,
            dirty_in_bytes_per_s REAL,
            dirty_bytes INTEGER,
            cache_bytes INTEGER,
            in_use_ratio REAL,
            backing_depth_ios INTEGER,
            time_to_full_s REAL,
            time_to_clean_s REAL,
            paths TEXT NOT NULL,
            missing TEXT NOT NULL,
            samples INTEGER NOT NULL DEFAULT 1,
            covered_ns INTEGER NOT NULL DEFAULT 1000000000,
            known TEXT NOT NULL DEFAULT '{}',
            mode TEXT,
            dirty_bytes_max INTEGER,
            clean_ratio REAL,
            gap_destage_bytes INTEGER,
            latency TEXT,
            PRIMARY KEY (volume, span_ns, at_unix_ns)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE decisions (
            id INTEGER PRIMARY KEY,
            volume TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            at_ns INTEGER NOT NULL,
            gate TEXT,
            gate_strategy TEXT NOT NULL,
            sequential_cutoff_bytes INTEGER,
            cutoff_strategy TEXT NOT NULL,
            document TEXT NOT NULL,
            acted INTEGER NOT NULL DEFAULT 0,
            stands TEXT NOT NULL DEFAULT '{}'
        )
        """,
        "CREATE INDEX decisions_by_time ON decisions (volume, at_unix_ns)",
        "CREATE INDEX decisions_by_fate ON decisions (acted, at_unix_ns)",
        """
        CREATE TABLE actions (
            id INTEGER PRIMARY KEY,
            decision_id INTEGER REFERENCES decisions (id) ON DELETE SET NULL,
            volume TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            at_ns INTEGER NOT NULL,
            knob TEXT NOT NULL,
            old TEXT,
            new TEXT NOT NULL,
            strategy TEXT NOT NULL,
            reason TEXT NOT NULL,
            outcome TEXT NOT NULL,
            read_back TEXT,
            error TEXT NOT NULL,
            latency_ns INTEGER
        )
        """,
        "CREATE INDEX actions_by_time ON actions (volume, at_unix_ns)",
        "CREATE INDEX actions_by_decision ON actions (decision_id)",
        """
        CREATE TABLE edges (
            id INTEGER PRIMARY KEY,
            volume TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            kind TEXT NOT NULL,
            length_ns INTEGER NOT NULL,
            late_ns INTEGER NOT NULL
        )
        """,
        "CREATE INDEX edges_by_time ON edges (volume, at_unix_ns)",
        """
        CREATE TABLE live (
            volume TEXT PRIMARY KEY,
            at_unix_ns INTEGER NOT NULL,
            document TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE rollup_due (
            span_ns INTEGER NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            volume TEXT NOT NULL,
            PRIMARY KEY (span_ns, at_unix_ns, volume)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE tallies (
            volume TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            what TEXT NOT NULL,
            strategy TEXT NOT NULL,
            knob TEXT NOT NULL,
            outcome TEXT NOT NULL,
            count INTEGER NOT NULL,
            amount INTEGER NOT NULL,
            PRIMARY KEY (volume, at_unix_ns, what, strategy, knob, outcome)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE intents (
            id INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            volume TEXT,
            args TEXT NOT NULL,
            who TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            resolved_unix_ns INTEGER,
            ok INTEGER,
            outcome TEXT
        )
        """,
        "CREATE INDEX intents_pending ON intents (id) WHERE resolved_unix_ns IS NULL",
        "CREATE INDEX intents_resolved ON intents (at_unix_ns) WHERE resolved_unix_ns IS NOT NULL",
    ),
)

# originals: one row for each knob until its original value is restored.
# `device_uuid` and `instance`: which device the value belongs to (actuators.ownership).
JOURNAL: Final = Schema(
    create=(
        """
        CREATE TABLE originals (
            id INTEGER PRIMARY KEY,
            volume TEXT NOT NULL,
            knob TEXT NOT NULL,
            path TEXT NOT NULL,
            original TEXT NOT NULL,
            last_written TEXT NOT NULL,
            boot_id TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            by TEXT NOT NULL,
            why TEXT NOT NULL,
            device_uuid TEXT NOT NULL,
            instance INTEGER NOT NULL,
            UNIQUE (volume, knob)
        )
        """,
    )
)

OWNER: Final = "CASE device_uuid WHEN '' THEN volume ELSE device_uuid END"
"""Whose a row is: the device of this uuid, or whatever has the name where no uuid is known."""

# overrides: what a person asked for that lasts; `until_unix_ns`: NULL means until it is released.
# `invalid`: why the row was set aside; then it has no effect. At most one of a kind is in force for
# a knob: the partial index makes a second one impossible.
# `device_uuid`: of the backing device or the dm device, since the next boot may give `volume` to
# another one; empty where it has none, and in rows of older releases until the volume is seen.
# pins: files that are kept in the cache; `inode` and `generation` tell a file from a later one;
# `mount`: where its file system was mounted, NULL in rows of older releases.
OVERRIDES: Final = Schema(
    create=(
        """
        CREATE TABLE overrides (
            id INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            volume TEXT NOT NULL,
            knob TEXT NOT NULL,
            value TEXT NOT NULL,
            who TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            until_unix_ns INTEGER,
            ended_unix_ns INTEGER,
            outcome TEXT,
            invalid TEXT
        )
        """,
        """
        CREATE UNIQUE INDEX overrides_in_force ON overrides (volume, kind, knob)
        WHERE ended_unix_ns IS NULL AND invalid IS NULL
        """,
        """
        CREATE TABLE modes (
            volume TEXT PRIMARY KEY,
            mode TEXT NOT NULL,
            at_unix_ns INTEGER NOT NULL,
            invalid TEXT
        )
        """,
    ),
    migrations=(
        (
            """
            CREATE TABLE pins (
                id INTEGER PRIMARY KEY,
                volume TEXT NOT NULL,
                path TEXT NOT NULL,
                inode INTEGER NOT NULL,
                generation INTEGER,
                who TEXT NOT NULL,
                at_unix_ns INTEGER NOT NULL,
                ended_unix_ns INTEGER,
                outcome TEXT,
                invalid TEXT
            )
            """,
            """
            CREATE UNIQUE INDEX pins_in_force ON pins (path)
            WHERE ended_unix_ns IS NULL AND invalid IS NULL
            """,
        ),
        ("ALTER TABLE pins ADD COLUMN mount TEXT",),
        (
            "ALTER TABLE overrides ADD COLUMN device_uuid TEXT NOT NULL DEFAULT ''",
            "DROP INDEX IF EXISTS overrides_in_force",
            f"""
            CREATE UNIQUE INDEX overrides_in_force ON overrides ({OWNER}, kind, knob)
            WHERE ended_unix_ns IS NULL AND invalid IS NULL
            """,
            "ALTER TABLE modes RENAME TO modes_by_name",
            """
            CREATE TABLE modes (
                id INTEGER PRIMARY KEY,
                volume TEXT NOT NULL,
                mode TEXT NOT NULL,
                at_unix_ns INTEGER NOT NULL,
                invalid TEXT,
                device_uuid TEXT NOT NULL DEFAULT ''
            )
            """,
            f"CREATE UNIQUE INDEX modes_by_owner ON modes ({OWNER})",
            """
            INSERT INTO modes (volume, mode, at_unix_ns, invalid)
            SELECT volume, mode, at_unix_ns, invalid FROM modes_by_name WHERE volume IS NOT NULL
            """,
            "DROP TABLE modes_by_name",
        ),
        ("ALTER TABLE pins ADD COLUMN device_uuid TEXT NOT NULL DEFAULT ''",),
    ),
)
