# SPDX-License-Identifier: GPL-2.0-only
"""Writes of knobs that are not the gate's, as jobs of the gate worker.

I/O: through the knob writer that a job gets.
"""

from __future__ import annotations

from ebbgate.actuators.bcache_steps import Step, cutoff_steps, write
from ebbgate.actuators.gate_plan import cleaner_step, split_steps
from ebbgate.actuators.gate_worker import Job, original_value
from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.actuators.reason import Reason
from ebbgate.actuators.scheduler_settings import settings_knob
from ebbgate.knobs.catalog import (
    ANY_VALUE,
    CUTOFF,
    MAX_SECTORS,
    NR_REQUESTS,
    SCHEDULER,
    TABLE,
    TRIGGER_GC,
    WBT,
)
from ebbgate.knobs.places import disk_knobs
from ebbgate.model.decision import NOT_WRITTEN, Outcome
from ebbgate.model.dm import CLEANER


def cutoff_job(cutoff_bytes: int | None, reason: Reason) -> Job:
    """Set the sequential cutoff; None: the original."""
    if cutoff_bytes is None:
        return lambda writer: writer.release((CUTOFF,), reason)
    steps = cutoff_steps(cutoff_bytes)
    return lambda writer: writer.apply(steps, reason)


def garbage_job(reason: Reason) -> Job:
    """Have bcache collect its garbage, which frees buckets."""
    return lambda writer: writer.apply((write(TRIGGER_GC, 1, always=True),), reason)


def scheduler_job(scheduler: str, reason: Reason) -> Job:
    """Give all disks below the volume this I/O scheduler, or none of them; empty: their own.

    The kernel resets the length of the queue and the settings of the scheduler at each switch:
    their originals are journalled first, and stay in the journal until the disk has its own
    scheduler again.
    """

    def job(writer: KnobWriter) -> list[Outcome]:
        knobs = disk_knobs(writer.volume, SCHEDULER)
        settings = [settings_knob(knob) for knob in knobs]
        steps = [Step(knob, scheduler) for knob in knobs if scheduler]
        # Those of a scheduler that somebody else has chosen since.
        outcomes = writer.release(settings, reason)
        failures = _claim(writer, steps, settings, reason) if steps else []
        outcomes += failures + _all_or_none(writer, knobs, [] if failures else steps, reason)
        outcomes += writer.release(settings, reason)
        if writer.owned.keys().isdisjoint(knobs):
            lengths = disk_knobs(writer.volume, NR_REQUESTS)
            free = [knob for knob in lengths if knob not in writer.pinned]
            outcomes += writer.release(free, reason)
        return outcomes

    return job


def nr_requests_job(number: int, reason: Reason) -> Job:
    """Let the schedulers of all disks hold at least so many requests, or of none; 0: as many as
    ever. A disk without a scheduler takes no more than its own queue.
    """

    def job(writer: KnobWriter) -> list[Outcome]:
        knobs = disk_knobs(writer.volume, NR_REQUESTS)
        found = {knob: original_value(writer, knob) for knob in knobs}
        # Also of as many: another volume of the disk may have set them, and leave first.
        fewer = [knob for knob, held in found.items() if held is not None and held <= number]
        steps = [] if _lacks_scheduler(writer) else [write(knob, number) for knob in fewer]
        outcomes = _all_or_none(writer, knobs, steps, reason)
        if not writer.owned.keys().isdisjoint(disk_knobs(writer.volume, SCHEDULER)):
            outcomes += _claim_lengths(writer, reason)
        return outcomes

    return job


def wbt_job(lat_usec: int | None, reason: Reason) -> Job:
    """Set the throttling of writes of all disks where it is on, or of none; None: as ever.

    With bfq the kernel has turned it off, though 6.1 shows another value, and would not do so again
    once it was written.
    """

    def job(writer: KnobWriter) -> list[Outcome]:
        knobs = disk_knobs(writer.volume, WBT)
        on = [knob for knob in knobs if original_value(writer, knob)]
        on = [knob for knob in on if knob in writer.owned or not _has_bfq(writer, knob)]
        steps = [] if lat_usec is None else [write(knob, lat_usec) for knob in on]
        return _all_or_none(writer, knobs, steps, reason)

    return job


def _claim(
    writer: KnobWriter, steps: list[Step], settings: list[str], reason: Reason
) -> list[Outcome]:
    """Journal what a switch of the schedulers changes; return the failures."""
    failures = writer.claim(steps, reason) + _claim_lengths(writer, reason)
    # A disk without a scheduler has no settings; it may have got one since.
    writer.lacking.difference_update(settings)
    return failures + writer.claim([Step(knob, ANY_VALUE) for knob in settings], reason)


def _claim_lengths(writer: KnobWriter, reason: Reason) -> list[Outcome]:
    """Journal how long the disks' queues are, as far as that is not done; return the failures."""
    knobs = disk_knobs(writer.volume, NR_REQUESTS)
    found = [(knob, original_value(writer, knob)) for knob in knobs]
    return writer.claim([write(knob, held) for knob, held in found if held is not None], reason)


def split_job(on: bool, reason: Reason) -> Job:
    """Make requests shorter than a cache block, or as they were."""
    if not on:
        return lambda writer: writer.release((MAX_SECTORS,), reason)
    return lambda writer: writer.apply(split_steps(writer.volume), reason)


def clean_job(reason: Reason) -> Job:
    """Load the live table of dm-cache with the policy cleaner."""

    def job(writer: KnobWriter) -> list[Outcome]:
        if TABLE in writer.owned:
            why = "the table from before an earlier cleaning is not restored yet"
            return [writer.refuse(TABLE, CLEANER, reason, why)]
        try:
            step = cleaner_step(writer.read(TABLE) or "")
        except (OSError, ValueError) as error:
            return [writer.refuse(TABLE, CLEANER, reason, str(error))]
        return writer.apply((step,), reason)

    return job


def _all_or_none(
    writer: KnobWriter, knobs: tuple[str, ...], steps: list[Step], reason: Reason
) -> list[Outcome]:
    """Set a knob of all disks, or of none. What a person has set stays, and counts as refused."""
    free = [knob for knob in knobs if knob not in writer.pinned]
    outcomes = writer.apply(steps, reason) if len(free) == len(knobs) else []
    if not outcomes or any(outcome.kind in NOT_WRITTEN for outcome in outcomes):
        outcomes += writer.release(free, reason)
    return outcomes


def _has_bfq(writer: KnobWriter, knob: str) -> bool:
    """Has the disk of this knob bfq now? Also where that cannot be read."""
    try:
        return writer.read(f"{SCHEDULER}:{knob.partition(':')[2]}") in ("bfq", None)
    except OSError:
        return True


def _lacks_scheduler(writer: KnobWriter) -> bool:
    """Has one of the disks no scheduler now? Also where that cannot be read."""
    try:
        words = [writer.read(knob) for knob in disk_knobs(writer.volume, SCHEDULER)]
    except OSError:
        return True
    return not words or not {"none", None}.isdisjoint(words)
