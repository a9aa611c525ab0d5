# SPDX-License-Identifier: GPL-2.0-only
"""Advice on settings that guides recommend. Pure. The numbers are listed in advice.py.

Guides contradict each other: Canonical's charm sets sequential_cutoff and both thresholds to 0 with
writeback_percent 10 in its code and 30 in its text, others write 40 or 1; the kernel's own manual
suggests `echo 0`; a guide for Proxmox raises the thresholds to 10 and 40 ms. A value does not show
whether it was chosen or copied, so each advice says what the value does, and it is recommended only
if a measurement on this machine supports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ebbgate.doctor import evidence
from ebbgate.doctor.evidence import Evidence
from ebbgate.doctor.model import (
    CUTOFF_STOCK,
    KNOB_CHANGES,
    LASTS_KNOB,
    LASTS_SYSFS,
    Advice,
    Facts,
    Weight,
    write_command,
)
from ebbgate.knobs.catalog import BOUNDS, CONGESTED, CUTOFF, PERCENT, RATE_MINIMUM
from ebbgate.knobs.places import knob_path
from ebbgate.units import MIB, bytes_to_sectors, format_bytes, format_rate, sectors_to_bytes

# From here on the target of write-back is near the level at which the kernel stops caching
# asynchronous writes (40 % in use, drivers/md/bcache/writeback.h).
PERCENT_HIGH: Final = 25
PERCENT_LOW: Final = 5
RATE_MINIMUM_SECTORS_PER_S_MAX: Final = bytes_to_sectors(MIB)
CONGESTED_STOCK_US: Final = (2000, 20000)
_CLASSLESS: Final = ("none", "kyber")
"""Schedulers that ignore I/O classes."""


def knob_advice(
    facts: Facts, number: str, text: str, found: Evidence, effect: str, weight: Weight | None = None
) -> Advice:
    """Return advice on knobs that `ebbgate apply` can set; the evidence decides its weight.

    `text`: continues the volume's name. `weight`: instead of that of the evidence.
    """
    volume, change = facts.volume, KNOB_CHANGES[number]
    value = change.knobs[0][1]
    files = filter(None, (knob_path(volume, knob) for knob, _ in change.knobs))
    return Advice(
        number,
        weight or found.weight,
        volume.name,
        f"{volume.name} {text}",
        write_command(value, *files),
        lasts=LASTS_KNOB,
        evidence=found.text,
        effect=effect,
        change=change,
    )


def congested(facts: Facts) -> Iterator[Advice]:
    """EBB-205: congestion thresholds above 0."""
    knobs = {name: value for name, value in facts.state.knobs.items() if name not in facts.owned}
    read, write = (knobs.get(knob, "0") for knob in CONGESTED)
    if (read, write) == ("0", "0"):
        return
    # A threshold of 0 is off (drivers/md/bcache/io.c, bch_bbio_count_io_errors).
    limits = (("reads", read), ("writes", write))
    slow = " or ".join(f"{what} above {us} us" for what, us in limits if us != "0")
    guide = (read, write) != tuple(str(us) for us in CONGESTED_STOCK_US)
    raised = " Raising the thresholds, as guides do, only makes it rarer." if guide else ""
    yield knob_advice(
        facts,
        "EBB-205",
        f"bypasses the cache after {slow} on the cache device: one slow moment sends requests to"
        f" the disk. In enforce ebbgate turns this off as soon as it happens.{raised}",
        evidence.congested(facts.status),
        "no request goes to the disk because the cache device was slow for a moment",
    )


def detector_off(facts: Facts) -> Iterator[Advice]:
    """EBB-206: sequential_cutoff 0."""
    if facts.set_by_hand(CUTOFF) != 0:
        return
    measured = evidence.streams(facts.status, CUTOFF_STOCK)
    seen = {
        True: "",
        False: " Recently there were hardly any streams, so the setting matters little now.",
        None: " The share of streams in the load was not measured here yet.",
    }[measured.supports]
    yield knob_advice(
        facts,
        "EBB-206",
        "has sequential_cutoff 0, so streams (copies, backups) go through the cache and"
        " take the space of random writes. Once too much of the cache is in use, writes wait for"
        f" the disk.{seen}",
        measured,
        "streams leave space for random writes; in enforce streams that fit are cached",
    )


def percent_high(facts: Facts) -> Iterator[Advice]:
    """EBB-209: writeback_percent near the kernel's cutoff."""
    percent = facts.set_by_hand(PERCENT)
    if percent is None or percent < PERCENT_HIGH:
        return
    yield knob_advice(
        facts,
        "EBB-209",
        f"has writeback_percent {percent}: up to that share of the cache the kernel writes"
        " dirty data back slowly. From 40% of the cache in use on, it no longer caches"
        " asynchronous writes. A high value leaves less space for bursts and more data that only"
        " the SSD has; in return, blocks that are written again and again reach the disk less"
        " often.",
        evidence.level(facts.status, PERCENT_HIGH / 100),
        "more space for bursts; in enforce ebbgate writes back in gaps, whatever the value",
    )


def percent_zero(facts: Facts) -> Iterator[Advice]:
    """EBB-210: writeback_percent 0."""
    if facts.set_by_hand(PERCENT) != 0:
        return
    yield knob_advice(
        facts,
        "EBB-210",
        "has writeback_percent 0: the kernel writes dirty data back without a rate limit,"
        f" also while users work, but in the idle I/O class. {_idle_class(facts)}",
        evidence.destage(facts.status),
        "write-back has a rate limit again; in enforce it has none in gaps only",
    )


def _idle_class(facts: Facts) -> str:
    """Say whether the idle class protects users on these disks."""
    blind = [facts.disk(each.name) for each, _ in facts.queues if each.scheduler in _CLASSLESS]
    if blind:
        return (
            f"The scheduler of {', '.join(blind)} ignores the class, so users wait for all of it."
        )
    if facts.several_disks:
        return (
            "The kernel's scheduler respects the class, but not for requests that a controller, a"
            " SAN or md has already taken."
        )
    return "The scheduler respects the class, but not for what the disk has already taken."


def percent_low(facts: Facts) -> Iterator[Advice]:
    """EBB-211: writeback_percent so low that write-back hardly ever stops."""
    percent = facts.set_by_hand(PERCENT)
    if percent is None or not 0 < percent < PERCENT_LOW:
        return
    yield knob_advice(
        facts,
        "EBB-211",
        f"has writeback_percent {percent}: the kernel writes back nearly all the time, and"
        " a block that is written again and again goes to the disk each time. In return the cache"
        " hardly ever fills. Writing back in gaps has the same benefit and leaves the disk to"
        " users.",
        evidence.destage(facts.status),
        "fewer writes to the disk; in enforce ebbgate writes back in gaps",
        Weight.NOTE,
    )


def rate_minimum(facts: Facts) -> Iterator[Advice]:
    """EBB-212: a high minimum rate."""
    sectors = facts.set_by_hand(RATE_MINIMUM)
    if sectors is None or sectors <= RATE_MINIMUM_SECTORS_PER_S_MAX:
        return
    name = facts.volume.name
    yield Advice(
        "EBB-212",
        Weight.NOTE,
        name,
        f"{name} has a {RATE_MINIMUM} of {format_rate(sectors_to_bytes(sectors))}: while anything"
        " is dirty, the kernel writes back at least that fast, whatever users do."
        + (" For several disks that may be little." if facts.several_disks else ""),
        write_command(8, f"/sys/block/{name}/bcache/{RATE_MINIMUM}"),
        lasts=LASTS_SYSFS,
        undo=write_command(sectors, f"/sys/block/{name}/bcache/{RATE_MINIMUM}"),
        evidence=evidence.destage(facts.status).text,
        effect="the kernel slows write-back down while users are active",
    )


def cutoff_tiny(facts: Facts) -> Iterator[Advice]:
    """EBB-213: a cutoff below the size of ordinary requests."""
    cutoff = facts.set_by_hand(CUTOFF)
    if cutoff is None or not 0 < cutoff < BOUNDS[CUTOFF].low:
        return
    everything = cutoff <= sectors_to_bytes(1)
    what = "everything" if everything else "every request of that size"
    yield knob_advice(
        facts,
        "EBB-213",
        f"has sequential_cutoff {format_bytes(cutoff)}: {what} bypasses the cache, also reads that"
        " would be worth caching.",
        evidence.streams(facts.status, max(cutoff, sectors_to_bytes(1))),
        "ordinary requests are cached again",
        Weight.ADVICE if everything else None,
    )


def congestion_off(facts: Facts) -> Iterator[Advice]:
    """EBB-214: both thresholds 0, which is right."""
    if [facts.set_by_hand(knob) for knob in CONGESTED] == [0, 0]:
        name = facts.volume.name
        yield Advice(
            "EBB-214",
            Weight.NOTE,
            name,
            f"{name} has both congestion thresholds at 0, as guides recommend, and that is right:"
            " no request bypasses the cache because the SSD was slow for a moment. The kernel"
            " loses the setting when the volume is stopped; with `ebbgate set` it lasts.",
        )


BCACHE_RULES: Final[tuple[Callable[[Facts], Iterator[Advice]], ...]] = (
    percent_high,
    percent_zero,
    percent_low,
    rate_minimum,
    cutoff_tiny,
    congestion_off,
)
