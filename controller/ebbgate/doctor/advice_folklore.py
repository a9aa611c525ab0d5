# SPDX-License-Identifier: GPL-2.0-only
"""Settings that guides hand on, and what they really do. Pure. The numbers are in advice.py.

Guides contradict each other: Canonical's charm sets sequential_cutoff and both thresholds to 0 with
writeback_percent 10 in its code and 30 in its text, others write 40 or 1; the kernel's own manual
teaches `echo 0`; a guide for Proxmox raises the thresholds to 10 and 40 ms. Whether a setting is
folklore or a choice cannot be seen, so each is met with what it does here, not with a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ebbgate.actuators.bounds import BOUNDS, CONGESTED, CUTOFF, PERCENT
from ebbgate.doctor import evidence
from ebbgate.doctor.finding import Advice, Change, Facts, Weight
from ebbgate.model.volume import Kind
from ebbgate.probes.dm_status import old_settings
from ebbgate.units import MIB, bytes_to_sectors, format_bytes, format_rate, sectors_to_bytes

CUTOFF_STOCK: Final = 4 * MIB
PERCENT_STOCK: Final = 10
# From here on the level that destage aims at is near the one at which the kernel stops caching
# asynchronous writes (40 % in use, drivers/md/bcache/writeback.h).
PERCENT_HIGH: Final = 25
PERCENT_LOW: Final = 5
RATE_MINIMUM_SECTORS_PER_S_MAX: Final = bytes_to_sectors(MIB)
CONGESTED_STOCK_US: Final = (2000, 20000)


def _bcache(facts: Facts) -> str:
    return f"/sys/block/{facts.volume.name}/bcache"


def congested(facts: Facts) -> Iterator[Advice]:
    """EBB-205: thresholds above 0, stock's or a guide's."""
    read, write = (facts.state.knobs.get(knob, "0") for knob in CONGESTED)
    if (read, write) == ("0", "0"):
        return
    guide = (read, write) != tuple(str(us) for us in CONGESTED_STOCK_US)
    raised = " Guides that raise the thresholds only make it rarer." if guide else ""
    cache_set = f"/sys/fs/bcache/{facts.volume.set_uuid}"
    yield Advice(
        "EBB-205",
        Weight.NOTE,
        facts.volume.name,
        f"bypasses the cache after reads above {read} us or writes above {write} us on the "
        "SSD: one slow moment sends requests to the disk. In enforce ebbgate switches that off "
        f"as soon as it sees one.{raised}",
        f"echo 0 | tee {cache_set}/congested_{{read,write}}_threshold_us",
        evidence=evidence.congested(facts.live),
        effect="no request is sent to the disk because the SSD was slow for a moment",
        change=Change(tuple((knob, "0") for knob in CONGESTED)),
    )


def detector_off(facts: Facts) -> Iterator[Advice]:
    """EBB-206: sequential_cutoff 0."""
    if facts.set_by_hand(CUTOFF) != 0:
        return
    yield Advice(
        "EBB-206",
        Weight.ADVICE,
        facts.volume.name,
        "has sequential_cutoff 0, as the kernel's manual and many guides teach: every stream goes "
        "through the cache, until the kernel stops caching writes and even random ones wait for "
        "the disk",
        f"echo {CUTOFF_STOCK} > {_bcache(facts)}/sequential_cutoff",
        evidence=evidence.streams(facts.live, CUTOFF_STOCK),
        effect="streams leave the room to random writes; in enforce a stream that fits is absorbed",
        change=Change(((CUTOFF, str(CUTOFF_STOCK)),)),
    )


def percent_high(facts: Facts) -> Iterator[Advice]:
    """EBB-209: writeback_percent near the kernel's cutoff."""
    percent = facts.set_by_hand(PERCENT)
    if percent is None or percent < PERCENT_HIGH:
        return
    yield Advice(
        "EBB-209",
        Weight.ADVICE,
        facts.volume.name,
        f"has writeback_percent {percent}, as guides have it: destage hardly begins before so much "
        "of the cache is dirty, and from 40% in use on the kernel caches no asynchronous write. So "
        "a burst finds no room, and more is lost with the SSD; nothing gets faster",
        f"echo {PERCENT_STOCK} > {_bcache(facts)}/{PERCENT}",
        evidence=evidence.level(facts.live),
        effect="room for bursts; in enforce ebbgate drains in gaps, whatever the value",
        change=Change(((PERCENT, str(PERCENT_STOCK)),)),
    )


def percent_zero(facts: Facts) -> Iterator[Advice]:
    """EBB-210: writeback_percent 0."""
    if facts.set_by_hand(PERCENT) != 0:
        return
    yield Advice(
        "EBB-210",
        Weight.ADVICE,
        facts.volume.name,
        "has writeback_percent 0: no rate limit holds, and the kernel destages as fast as it can, "
        "in the idle class, beside users all the time. A scheduler without classes (none, kyber) "
        "lets users wait for all of it",
        f"echo {PERCENT_STOCK} > {_bcache(facts)}/{PERCENT}",
        evidence=evidence.destage(facts.live),
        effect="destage is paced again; in enforce it runs flat out in gaps alone",
        change=Change(((PERCENT, str(PERCENT_STOCK)),)),
    )


def percent_low(facts: Facts) -> Iterator[Advice]:
    """EBB-211: writeback_percent so low that destage hardly ever rests."""
    percent = facts.set_by_hand(PERCENT)
    if percent is None or not 0 < percent < PERCENT_LOW:
        return
    yield Advice(
        "EBB-211",
        Weight.NOTE,
        facts.volume.name,
        f"has writeback_percent {percent}: destage hardly ever rests, and a block that is written "
        "again and again goes to the disk each time. What people gain by it is a cache that never "
        "fills; draining in gaps gains the same and leaves the disk to users",
        f"echo {PERCENT_STOCK} > {_bcache(facts)}/{PERCENT}",
        evidence=evidence.destage(facts.live),
        effect="fewer writes to the disk; with ebbgate in enforce the cache is drained in gaps",
        change=Change(((PERCENT, str(PERCENT_STOCK)),)),
    )


def rate_minimum(facts: Facts) -> Iterator[Advice]:
    """EBB-212: a floor under the rate."""
    sectors = facts.set_by_hand("writeback_rate_minimum")
    if sectors is None or sectors <= RATE_MINIMUM_SECTORS_PER_S_MAX:
        return
    yield Advice(
        "EBB-212",
        Weight.NOTE,
        facts.volume.name,
        f"has a writeback_rate_minimum of {format_rate(sectors_to_bytes(sectors))}: the kernel "
        "destages at least that fast while anything is dirty, whatever users do",
        f"echo 8 > {_bcache(facts)}/writeback_rate_minimum",
        evidence=evidence.destage(facts.live),
        effect="destage gives way to users, as far as the kernel knows how",
    )


def cutoff_tiny(facts: Facts) -> Iterator[Advice]:
    """EBB-213: a cutoff under the size of ordinary requests."""
    cutoff = facts.set_by_hand(CUTOFF)
    if cutoff is None or not 0 < cutoff < BOUNDS[CUTOFF].low:
        return
    yield Advice(
        "EBB-213",
        Weight.ADVICE,
        facts.volume.name,
        f"has sequential_cutoff {format_bytes(cutoff)}: "
        + ("everything" if cutoff <= sectors_to_bytes(1) else "every request of that size")
        + " goes past the cache, reads that would be worth it among them",
        f"echo {CUTOFF_STOCK} > {_bcache(facts)}/sequential_cutoff",
        evidence=evidence.streams(facts.live, max(cutoff, 512)),
        effect="ordinary requests are cached again",
        change=Change(((CUTOFF, str(CUTOFF_STOCK)),)),
    )


def congestion_off(facts: Facts) -> Iterator[Advice]:
    """EBB-214: both thresholds 0, which guides have right."""
    if [facts.set_by_hand(knob) for knob in CONGESTED] == [0, 0]:
        yield Advice(
            "EBB-214",
            Weight.NOTE,
            facts.volume.name,
            "has both thresholds of congestion at 0, as guides have it, and here they are right: "
            "nothing is sent past the cache because the SSD was slow for a moment. The kernel "
            "forgets it when the volume is stopped; `ebbgate set` does not",
        )


def mq_settings(facts: Facts) -> Iterator[Advice]:
    """EBB-309: settings of dm-cache's old policy mq."""
    mapping = facts.volume.mapping
    if facts.volume.kind is not Kind.DM_CACHE or mapping is None:
        return
    found = old_settings(mapping.params)
    if found:
        lvm = mapping.lvm_name
        yield Advice(
            "EBB-309",
            Weight.NOTE,
            facts.volume.title,
            f"has {', '.join(found)} in its table: settings of the old policy mq, which the kernel "
            "takes and ignores. Streams are not kept out by them",
            f"lvchange --cachesettings '{' '.join(f'{name}=default' for name in found)}' {lvm}"
            if lvm
            else "",
            effect="none on the speed: the table says what holds",
        )


BCACHE_RULES: Final[tuple[Callable[[Facts], Iterator[Advice]], ...]] = (
    percent_high,
    percent_zero,
    percent_low,
    rate_minimum,
    cutoff_tiny,
    congestion_off,
)
