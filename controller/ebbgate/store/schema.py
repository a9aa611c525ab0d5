# SPDX-License-Identifier: GPL-2.0-only
"""The numbered migrations of the databases. Pure data.

A migration that was released is never edited: the next one changes what it made. Wall-clock times
are Unix nanoseconds (`_unix_ns`); `at_ns` is CLOCK_MONOTONIC, comparable within one boot only.
"""

from __future__ import annotations

from typing import Final

Migrations = tuple[tuple[str, ...], ...]

# samples: one row a second now; longer spans (`span_ns`) are for the roll-up that bounds it.
# actions: one outlives its decision, so that retention may thin decisions out first;
# `latency_ns` is the time from the edge that caused it to the write.
_HISTORY_1: Final = (
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
        document TEXT NOT NULL
    )
    """,
    "CREATE INDEX decisions_by_time ON decisions (volume, at_unix_ns)",
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
)

# samples: `samples` of them are in the row, together for `covered_ns`; `known`: of which columns
# fewer are known, and how many; `mode` where it was the same throughout. See store/rollup.py.
# decisions: `acted`: a knob was written for it, so it is kept longer; `stands`: what each strategy
# that has not acted on it yet is about. An index by time alone serves whoever forgets.
# rollup_due: buckets that got samples since they were last rolled up.
# tallies: what happened, counted by hour; small, so it outlives the events that it counts.
_HISTORY_2: Final = (
    "ALTER TABLE samples ADD COLUMN samples INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE samples ADD COLUMN covered_ns INTEGER NOT NULL DEFAULT 1000000000",
    "ALTER TABLE samples ADD COLUMN known TEXT NOT NULL DEFAULT '{}'",
    "ALTER TABLE samples ADD COLUMN mode TEXT",
    "ALTER TABLE samples ADD COLUMN dirty_bytes_max INTEGER",
    "ALTER TABLE samples ADD COLUMN clean_ratio REAL",
    "ALTER TABLE samples ADD COLUMN gap_destage_bytes INTEGER",
    "ALTER TABLE decisions ADD COLUMN acted INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE decisions ADD COLUMN stands TEXT NOT NULL DEFAULT '{}'",
    """
    UPDATE decisions SET acted = 1 WHERE id IN
        (SELECT decision_id FROM actions WHERE outcome = 'changed')
    """,
    "CREATE INDEX decisions_by_fate ON decisions (acted, at_unix_ns)",
    """
    CREATE TABLE rollup_due (
        span_ns INTEGER NOT NULL,
        at_unix_ns INTEGER NOT NULL,
        volume TEXT NOT NULL,
        PRIMARY KEY (span_ns, at_unix_ns, volume)
    ) WITHOUT ROWID
    """,
    """
    INSERT INTO rollup_due SELECT DISTINCT 60000000000,
        at_unix_ns - at_unix_ns % 60000000000, volume FROM samples WHERE span_ns = 1000000000
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
    INSERT INTO tallies SELECT volume, at_unix_ns - at_unix_ns % 3600000000000, 'action', strategy,
        knob, outcome, count(*), 0 FROM actions GROUP BY 1, 2, 4, 5, 6
    """,
    """
    INSERT INTO tallies SELECT volume, at_unix_ns - at_unix_ns % 3600000000000, 'gap', '', '', '',
        count(*), sum(length_ns) FROM edges WHERE kind = 'busy' GROUP BY 1, 2
    """,
)
# samples: `latency`: the histograms of store/latency.py; NULL where it is not known.
_HISTORY_3: Final = ("ALTER TABLE samples ADD COLUMN latency TEXT",)
# intents: what people asked for and what became of it; `id` is the daemon's number of the request.
# `ok` and the two after it: NULL until it is dealt with.
_HISTORY_4: Final = (
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
)
HISTORY: Final[Migrations] = (_HISTORY_1, _HISTORY_2, _HISTORY_3, _HISTORY_4)

# originals: one row for each knob that is not back yet; it is deleted once the original is back.
# `device_uuid` and `instance`: which device the value belongs to (actuators.ownership).
_JOURNAL_1: Final = (
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
JOURNAL: Final[Migrations] = (_JOURNAL_1,)

# overrides: what a person asked for that lasts; `until_unix_ns`: NULL means until it is released.
# `invalid`: why the row was set aside; then it has no effect. At most one of a kind is in force for
# a knob: the partial index makes a second one impossible.
_OVERRIDES_1: Final = (
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
)
OVERRIDES: Final[Migrations] = (_OVERRIDES_1,)
