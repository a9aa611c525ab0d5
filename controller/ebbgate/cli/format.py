# SPDX-License-Identifier: GPL-2.0-only
"""Formats figures and knobs for people; an unknown value is a dash, never zero. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from ebbgate import units
from ebbgate.knobs.catalog import find_knob
from ebbgate.knobs.knob import KnobUnit
from ebbgate.knobs.values import format_value
from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.frame import Rates
from ebbgate.model.pin import PinStatus
from ebbgate.model.promotion import PromotionStatus
from ebbgate.model.records import Direction
from ebbgate.model.status import (
    GateStatus,
    KeptChoice,
    KnobStatus,
    LayoutStatus,
    MissRatioStatus,
    OverrideStatus,
    VolumeStatus,
)
from ebbgate.model.volume import Device, Kind, Volume
from ebbgate.model.warm import JobStatus
from ebbgate.signals.forecast import CUTOFF_ASYNC_RATIO, CUTOFF_SYNC_RATIO

UNKNOWN: Final = "-"
NO_VOLUME: Final = "no cached volume found (ebbgate looks for bcache, dm-cache and dm-writecache)"
_UNLIMITED_SECTORS_PER_S: Final = 1 << 30


def size(count_bytes: float | None) -> str:
    """`420 MiB`."""
    return UNKNOWN if count_bytes is None else units.format_bytes(count_bytes)


def ratio(value: float | None) -> str:
    """`34%`."""
    return UNKNOWN if value is None else units.format_ratio(value)


def span(duration_ns: float | None) -> str:
    """`410 ms`."""
    return UNKNOWN if duration_ns is None else units.format_ns(duration_ns)


def seconds(duration_s: float | None) -> str:
    """`4 min`; `never` for infinity."""
    if duration_s is None:
        return UNKNOWN
    if duration_s == float("inf"):
        return "never"
    return units.format_ns(duration_s * units.NS_PER_S)


def load(foreground: Mapping[Direction, Rates] | None) -> str:
    """`read 120/s 1.2 MiB/s, write 0/s`."""
    if not foreground:
        return UNKNOWN
    parts = []
    for op, rates in foreground.items():
        moved = f" {units.format_rate(rates.bytes_per_s)}" if rates.bytes_per_s else ""
        parts.append(f"{op} {rates.iops:.0f}/s{moved}")
    return ", ".join(parts)


def gate(status: Gate | GateStatus | None) -> str:
    """`paced 40 MiB/s`; `kernel` where the kernel's own settings apply."""
    if status is None:
        return UNKNOWN
    if status.kind is GateKind.RELEASED:
        return "kernel"
    if status.kind is GateKind.PACED and status.depth_ios:
        return f"paced, {status.depth_ios} at once"
    if status.kind is GateKind.PACED and status.rate_bytes_per_s:
        return f"{status.kind} {units.format_rate(status.rate_bytes_per_s)}"
    if status.kind is GateKind.OPEN and status.rate_bytes_per_s:
        return f"{status.kind}, {units.format_rate(status.rate_bytes_per_s)} on average"
    return str(status.kind)


def knob_value(name: str, value: str | None) -> str:
    """Format a knob's value, with a unit where the kernel's figure is hard to read."""
    knob = find_knob(name)
    if value is None:
        return UNKNOWN
    if knob is None or not value.isdigit():
        return value
    if knob.unit in (KnobUnit.BYTES, KnobUnit.SECTORS):
        return format_value(name, int(value))
    if knob.unit is KnobUnit.SECTORS_PER_S:
        return _sector_rate(int(value))
    return value


def override(status: OverrideStatus) -> str:
    """`sequential_cutoff 1 MiB, requested by jo, for another 9.5 min`."""
    what = status.kind
    if status.knob:
        what = f"{status.knob} {knob_value(status.knob, status.value)}"
    left_ns = status.left_ns
    lasts = "until released" if left_ns is None else f"for another {units.format_ns(left_ns)}"
    return f"{what}, requested by {status.who}, {lasts}"


def kept(choice: KeptChoice) -> str:
    """`mode enforce, since 2026-11-22 10:00 UTC`."""
    if choice.since_unix_ns is None:
        return choice.what
    return f"{choice.what}, since {utc_time(choice.since_unix_ns)} UTC"


def utc_time(unix_ns: int) -> str:
    """`2026-11-22 10:00`."""
    return f"{datetime.fromtimestamp(unix_ns / units.NS_PER_S, UTC):%Y-%m-%d %H:%M}"


def job(status: JobStatus) -> str:
    """`job 3, /srv/a: reading, 120 MiB of 256 MiB (by jo)`."""
    done = f"{size(status.read_bytes)} of {size(status.total_bytes)}"
    middle = "" if status.state.over else f", {done}"
    why = f": {status.why}" if status.why else ""
    others = other_promotions(status.other_promotions, status.promotion_holds)
    rest = f"{middle}{why}{'; ' if others else ''}{others}"
    return f"job {status.id}, {status.target} ({status.who}): {status.state}{rest}"


def other_promotions(blocks: int | None, holds: int) -> str:
    """`users' misses brought in 310 blocks, and reads were stopped for it 2 times`; or nothing."""
    if not blocks:
        return ""
    text = f"users' misses brought in {blocks} {'block' if blocks == 1 else 'blocks'}"
    if holds:
        text += f", and reads were stopped for it {holds} {'time' if holds == 1 else 'times'}"
    return text


def layout(status: LayoutStatus, now_ns: int | None) -> str:
    """`layout: 212 files, 14.2 GiB known, read 3 min ago; 3 files on another device`."""
    if status.read_ns is None or now_ns is None:
        return f"layout: not known: {status.error}" if status.error else "layout: being read"
    known = f"{status.files} files, {size(status.known_bytes)} known"
    text = f"layout: {known}, read {span(max(0, now_ns - status.read_ns))} ago"
    for why, count in status.left_out.items():
        text += f"; {count} {'file' if count == 1 else 'files'} {why}"
    return f"{text} ({status.error})" if status.error else text


def pin(status: PinStatus) -> str:
    """`pin 2, /srv/a (by jo): hot, 120 MiB, 12% of the cache, 100% of touches hit`."""
    parts = [str(status.state)]
    if status.size_bytes is not None:
        parts.append(f"{size(status.size_bytes)}, {ratio(status.cache_ratio)} of the cache")
    if status.hit_ratio is not None:
        parts.append(f"{ratio(status.hit_ratio)} of touches hit")
    why = f": {status.why}" if status.why else ""
    return f"pin {status.id}, {status.path} ({status.who}): {', '.join(parts)}{why}"


def promotion(status: PromotionStatus) -> str:
    """`hot data: 212 MiB moved in 14 s of reads, which saved users 96 s of disk time (...)`."""
    parts = [f"{size(status.moved_bytes)} moved in {span(status.busy_ns)} of reads"]
    if status.saved_ns is not None and status.saved_ns < 0:
        parts[0] += f", which cost users {span(-status.saved_ns)}"
    elif status.saved_ns is not None:
        parts[0] += f", which saved users {span(status.saved_ns)}"
    if status.saved_error_ns is not None:
        parts[0] += f" of disk time (error {span(status.saved_error_ns)})"
    if status.failed_bytes:
        parts.append(f"{size(status.failed_bytes)} not taken by the cache")
    if status.pending_bytes:
        share = f" in at most {ratio(status.time_share)} of the time"
        parts.append(f"{size(status.pending_bytes)} to move{share}")
    if status.held_out_bytes:
        parts.append(f"{size(status.held_out_bytes)} held out to compare")
    if others := other_promotions(status.other_promotions, status.promotion_holds):
        parts.append(others)
    if status.mover_why:
        parts.append(f"waits: {status.mover_why}")
    return f"hot data: {'; '.join(parts)}"


def _sector_rate(sectors_per_s: int) -> str:
    """Format a rate; bcache's INT_MAX (shown by the kernel as 0.9T) means no limit."""
    if sectors_per_s > _UNLIMITED_SECTORS_PER_S:
        return "unlimited"
    return units.format_rate(units.sectors_to_bytes(sectors_per_s))


def bar(in_use_ratio: float | None, limits: tuple[float, float], cells: int) -> str:
    """`██████···┆······┆···`: how full the cache is, with the kernel's two limits marked."""
    if in_use_ratio is None:
        return UNKNOWN
    marks = {round(limit * cells) for limit in limits}
    filled = round(min(1.0, max(0.0, in_use_ratio)) * cells)
    return "".join("█" if cell < filled else "┆" if cell in marks else "·" for cell in range(cells))


def limits(kind: Kind | None, knobs: Mapping[str, KnobStatus]) -> tuple[float, float]:
    """Return the levels (0..1) at which the volume stops caching asynchronous, then all writes.

    Only bcache has such levels: they are in its knobs, or the kernel's defaults.
    """
    if kind is not Kind.BCACHE:
        return 1.0, 1.0

    def level(name: str, default: float) -> float:
        value = knobs.get(name, KnobStatus()).value or ""
        return int(value) / 100 if value.isdigit() else default

    return (
        level("cutoff_writeback", CUTOFF_ASYNC_RATIO),
        level("cutoff_writeback_sync", CUTOFF_SYNC_RATIO),
    )


def device(found: Device) -> str:
    """`vda (2 GiB, rotational, mq-deadline)`."""
    media = {True: "rotational", False: "not rotational", None: None}[found.rotational]
    words = filter(None, [size(found.size_bytes), media, found.scheduler])
    return f"{found.name} ({', '.join(words)})"


def hit_ratios(modelled: MissRatioStatus) -> str:
    """`41% of reads with half the cache, 62% with this one, 81% with twice as much, ...`."""
    sizes = {"this one": 0, "twice as much": 1, "4 times as much": 2}
    half = modelled.hit_ratio(-1)
    if half is None:
        read = f"{modelled.sampled_reads} of {modelled.reads_min} sampled reads"
        return f"not known yet ({read})"
    found = [f"{ratio(modelled.hit_ratio(at))} with {name}" for name, at in sizes.items()]
    return ", ".join([f"{ratio(half)} of reads with half the cache", *found])


def disk_state(status: VolumeStatus) -> str:
    """`standby`, or `unknown` and why."""
    why = f" ({status.backing_state_why})" if status.backing_state_why else ""
    return f"{status.backing_state}{why}"


def caches(volume: Volume) -> str:
    """`vdb (1 GiB, ...)`: the cache devices of a volume, or `none`."""
    return ", ".join(map(device, volume.caches)) or "none"


def policy(status: VolumeStatus) -> str:
    """Name the policy of a volume and the schedule entry that is active."""
    return f"policy {status.policy}" + (f" ({status.overlay})" if status.overlay else "")
