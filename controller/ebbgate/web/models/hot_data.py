# SPDX-License-Identifier: GPL-2.0-only
"""Models of where users miss the cache, and of what is moved into it. Pure data."""

from __future__ import annotations

from ebbgate.web.models.base import Model, doc


class MissedChunk(Model):
    """A part of the volume that users missed in the cache of late."""

    chunk: int = doc("Its number from the start of the volume, in chunks of 1 MiB.", "chunks")
    misses: int = doc("Requests that missed it; older ones count less.", "requests")
    group: str = doc("The file or relation that it belongs to, or empty.")
    state: str | None = doc(
        "What `promote_hot` does with it: pending, moved, failed or held out; null: nothing."
    )


class MissedGroup(Model):
    """A file or relation that users missed in the cache of late."""

    name: str = doc("The file or relation; empty for all data of no known file.")
    misses: int = doc("Requests that missed it; older ones count less.", "requests")
    chunks: int | None = doc("Its size; null for data of no known file.", "chunks")
    moved: int = doc("Chunks of it that `promote_hot` has moved of late.", "chunks")
    pending: int = doc("Chunks of it that are chosen and still to be moved.", "chunks")
    held_out: int = doc("Chunks of it that are left out to compare.", "chunks")


class Heat(Model):
    """Where users missed the cache in the last minutes. Older misses count less."""

    why: str = doc("Why it is unknown; empty if it is known.")
    observed_ns: int = doc("The time that `misses` covers.", "ns")
    misses: int = doc("All misses.", "requests")
    unlisted: int = doc("Those of which the place is unknown.", "requests")
    bin_bytes: int = doc("The size of each part in `bins`.", "B")
    bins: list[int] = doc("Misses by part of the volume, from its start.", "requests")
    moved: list[int] = doc(
        "How many chunks of each part `promote_hot` has moved of late; empty for none.", "chunks"
    )
    pending: list[int] = doc(
        "How many chunks of each part are chosen and still to be moved; empty for none.", "chunks"
    )
    held_out: list[int] = doc(
        "How many chunks of each part are left out to compare; empty for none.", "chunks"
    )
    chunks: list[MissedChunk] = doc("Chunks with the most misses.")
    groups: list[MissedGroup] = doc(
        "Files and relations with the most misses; empty where no file is known."
    )


class MissedBy(Model):
    """A cgroup or a file whose requests missed the cache of late. Older misses count less."""

    name: str = doc("The cgroup's path or the file; empty for all of which none is known.")
    reads: int = doc("Reads that missed it.", "requests")
    writes: int = doc("Writes that went to the backing device.", "requests")


class Attribution(Model):
    """Whose requests missed the cache in the last minutes. Older misses count less."""

    why: str = doc("Why it is unknown; empty if it is known.")
    observed_ns: int = doc("The time that the misses cover.", "ns")
    cgroups: list[MissedBy] = doc("Cgroups with the most misses.")
    cgroups_others: int = doc("Misses of all other cgroups.", "requests")
    files: list[MissedBy] = doc("Files with the most misses; direct I/O tells none.")
    files_others: int = doc("Misses of all other files.", "requests")


class HotGroup(Model):
    """A file of which something is worth a move into the cache."""

    name: str = doc("The file or relation; empty for data of no known file.")
    chunks: int = doc("How much of it, in chunks of 1 MiB.", "chunks")


class HotChunk(Model):
    """A part of the volume that is worth a move into the cache."""

    chunk: int = doc("Its number from the start of the volume, in chunks of 1 MiB.", "chunks")
    state: str = doc("pending, moved, failed or held out.")
    miss_iops: float = doc("Predicted misses of users.", "requests/s")
    group: str = doc("The file or relation that it belongs to, or empty.")


class Promotion(Model):
    """What `promote_hot` does: it moves what users miss into the cache."""

    phase: str = doc("unknown, learns, moves, rests, stopped or stands down.")
    reason: str = doc("What it does now and why, in a sentence.")
    mover: str = doc("The process that reads: moving, waiting or idle.")
    mover_why: str = doc("Why that process waits, or empty.")
    moved_bytes: int = doc(
        "Moved into the cache since the daemon follows the volume; for bcache estimated: one chunk"
        " of up to 16 is looked for in the cache.",
        "B",
    )
    failed_bytes: int = doc("Not read, or, estimated likewise, not taken by the cache.", "B")
    busy_ns: int = doc("How long the reads took.", "ns")
    time_share: float | None = doc("Share of time in which it may read; null if unknown.", "1")
    pending_bytes: int = doc("Still to be moved of what is chosen.", "B")
    held_out_bytes: int = doc("Worth a move, but left out to compare.", "B")
    saved_ns: float | None = doc(
        "Disk time of users that moves have saved so far, measured against what was held out; null"
        " before anything was measured.",
        "ns",
    )
    saved_error_ns: float | None = doc("Its error.", "ns")
    cost_ns: float | None = doc("Disk time that moves have cost, with what they displaced.", "ns")
    write_budget_left_bytes: float | None = doc(
        "What may still be written to the cache today before moves end; negative if more was"
        " written; null without the limit `ssd_writes`, or unknown.",
        "B",
    )
    other_promotions: int | None = doc(
        "What users' misses have brought into a dm-cache since the daemon follows the volume; null"
        " where the kernel counts none.",
        "cache blocks",
    )
    promotion_holds: int = doc(
        "How often reads of moves and warm-ups were stopped because more of these came beside"
        " them.",
        "times",
    )
    groups: list[HotGroup] = doc("Files with the most chunks that are worth a move.")
    chunks: list[HotChunk] = doc("Chunks with the most misses that are worth a move.")
