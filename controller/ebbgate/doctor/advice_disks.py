# SPDX-License-Identifier: GPL-2.0-only
"""Advice for the disks below a volume. Pure. The numbers are listed in advice.py.

All figures were measured with one disk. For a controller or a SAN with many disks behind one queue
nothing is recommended that was not measured on one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ebbgate.doctor.model import (
    LASTS_UDEV,
    Advice,
    DiskKind,
    Facts,
    Weight,
    udev_rule,
    write_command,
)
from ebbgate.knobs.catalog import QUEUE_DEPTH
from ebbgate.model.volume import Device

# What one SATA disk takes (NCQ). No request can overtake those inside a disk.
DEPTH_MAX: Final = 32
_LASTS_BOOT: Final = "It lasts until the next boot, or until multipathd makes the device again."
_SEVERAL: Final = {
    DiskKind.ARRAY: "It is an array: a RAID controller or a SAN",
    DiskKind.UNKNOWN: "It may be an array: a RAID controller or a SAN",
}


def depth_inside(device: Device) -> int | None:
    """Return how many requests may wait where no scheduler can reach them; None if unknown.

    SCSI and SATA report it (`device/queue_depth`). For other disks it is known only without a
    scheduler: then all of `nr_requests` is sent at once (block/blk-mq-sched.c:blk_mq_init_sched).
    """
    if device.queue_depth is not None:
        return device.queue_depth
    return device.nr_requests if device.scheduler == "none" else None


def disk_advice(
    number: str,
    weight: Weight,
    disk: str,
    text: str,
    setting: tuple[str, str | int, str | int | None],
    effect: str,
) -> Advice:
    """Return advice to give an attribute of a disk a value, for now and by a udev rule.

    `setting`: the attribute, its new and its present value.
    """
    attribute, value, before = setting
    file = f"/sys/block/{disk}/{attribute}"
    return Advice(
        number,
        weight,
        disk,
        text,
        write_command(value, file),
        lasts=LASTS_UDEV,
        keep=udev_rule(disk, attribute, value),
        undo="" if before is None else write_command(before, file),
        effect=effect,
    )


def scheduler(facts: Facts) -> Iterator[Advice]:
    """EBB-101: a rotating disk without an I/O scheduler."""
    for device, of in facts.queues:
        if not of.rotational or device.scheduler != "none":
            continue
        kind, disk = facts.kind(of.name), facts.disk(device.name)
        better = next((name for name in ("mq-deadline", "bfq") if name in device.schedulers), "")
        text = (
            f"{disk} has no I/O scheduler, so nothing holds write-back back: requests of users wait"
            " behind all dirty data that is being written back."
        )
        if kind in _SEVERAL:
            text = (
                f"{disk} has no I/O scheduler. {_SEVERAL[kind]} orders requests itself, and a"
                " scheduler in front of it may gain nothing. With a single disk it helps: try and"
                " compare."
            )
        weight = Weight.NOTE if kind in _SEVERAL else Weight.ADVICE
        if not better:
            text += " The kernel offers none here: load mq-deadline or bfq first."
            yield Advice("EBB-101", weight, disk, text)
            continue
        effect = (
            "in the lab, while pieces of 64 KiB were under way, the first request after a gap took"
            " up to 70 ms with none, 28 ms with mq-deadline and 34 ms with bfq (a disk without a"
            " write cache)"
        )
        setting = ("queue/scheduler", better, device.scheduler)
        advice = disk_advice("EBB-101", weight, disk, text, setting, effect)
        # The number of a dm device may be another one at the next boot.
        yield advice if device is of else replace(advice, lasts=_LASTS_BOOT, keep="")


def rotational(facts: Facts) -> Iterator[Advice]:
    """EBB-102: a backing device that reports that it does not rotate."""
    for device in facts.disks:
        if device.rotational is not False:
            continue
        kind, disk = facts.kind(device.name), facts.disk(device.name)
        if kind is DiskKind.SINGLE:
            yield Advice(
                "EBB-102",
                Weight.NOTE,
                disk,
                f"{disk} is an SSD. ebbgate is made for hard disks: an SSD behind a cache gains"
                " little from it.",
            )
            continue
        who = {
            DiskKind.VIRTUAL: "Virtual disks report this whatever is behind them",
            DiskKind.ARRAY: "RAID controllers and SANs may report this whatever is behind them",
        }.get(kind, "Controllers and virtual disks may report this whatever is behind them")
        yield disk_advice(
            "EBB-102",
            Weight.NOTE,
            disk,
            f"{disk} reports that it does not rotate. {who}. Change it only if hard disks are"
            " behind it.",
            ("queue/rotational", 1, 0),
            "the kernel and ebbgate treat it as hard disks",
        )


def slow_cache(facts: Facts) -> Iterator[Advice]:
    """EBB-111: a cache on a drive that reports that it rotates."""
    solid = {facts.disk(device.name): device.rotational is False for device in facts.disks}
    # Virtual disks, arrays and adapters report it whatever is behind them.
    slow = {
        facts.disk(device.name)
        for device in facts.cache_disks
        if device.rotational and facts.kind(device.name) is DiskKind.SINGLE
    }
    for disk in sorted(slow):
        text = f"The cache is on {disk}, which reports that it rotates"
        if solid and all(solid.values()):
            text += (
                f"; what is behind it ({', '.join(solid)}) does not. The order is probably wrong:"
                " take the cache away (bcache-detach or lvmcache-detach), and make the SSD the"
                " cache."
            )
            yield Advice("EBB-111", Weight.ADVICE, disk, text)
            continue
        text += ". A hard disk as the cache makes a volume no faster. If it is an SSD, say so."
        setting = ("queue/rotational", 0, 1)
        effect = "the kernel and the scripts of ebbgate treat it as an SSD"
        yield disk_advice("EBB-111", Weight.NOTE, disk, text, setting, effect)


def depth(facts: Facts) -> Iterator[Advice]:
    """EBB-103: a rotating disk that takes many requests at once."""
    for device in facts.disks:
        inside = depth_inside(device)
        disk = facts.disk(device.name)
        ours = f"{QUEUE_DEPTH}:{disk}" in facts.owned
        if not device.rotational or inside is None or inside <= DEPTH_MAX or ours:
            continue
        if facts.kind(device.name) is DiskKind.SINGLE and device.queue_depth is not None:
            yield _depth_of_a_drive(disk, inside)
        else:
            yield _depth_of_others(disk, inside, facts.kind(device.name))


def _depth_of_a_drive(disk: str, inside: int) -> Advice:
    return disk_advice(
        "EBB-103",
        Weight.ADVICE,
        disk,
        f"{disk} takes {inside} requests at once. The kernel cannot reorder requests inside a disk,"
        f" so requests of users wait behind all of them. {DEPTH_MAX} are enough for one disk.",
        ("device/queue_depth", DEPTH_MAX, inside),
        f"a request of a user waits for at most {DEPTH_MAX} others",
    )


def _depth_of_others(disk: str, inside: int, kind: DiskKind) -> Advice:
    if kind is DiskKind.VIRTUAL:
        what = (
            "Whether that is much depends on what is behind this virtual disk: for one hard disk"
            f" {DEPTH_MAX} are enough, an array needs about {DEPTH_MAX} for each of its disks. The"
            " machine that hosts it sets the limit."
        )
    else:
        what = (
            f"{_SEVERAL.get(kind, _SEVERAL[DiskKind.UNKNOWN])} needs about {DEPTH_MAX} for each of"
            " its disks, and with fewer it gets slower. Lower the depth only if users wait while"
            " dirty data is written back, step by step, and compare."
        )
    text = f"{disk} takes {inside} requests at once. {what}"
    return Advice("EBB-103", Weight.NOTE, disk, text)


def stacked(facts: Facts) -> Iterator[Advice]:
    """EBB-104: a backing device that is made of other devices."""
    backing = facts.volume.backing.name
    names = [device.name for device in facts.disks]
    if facts.multipath:
        yield Advice("EBB-104", Weight.NOTE, backing, _of_paths(facts, backing, names))
    elif names and names != [backing]:
        several = "these disks" if len(names) > 1 else "this disk"
        yield Advice(
            "EBB-104",
            Weight.NOTE,
            backing,
            f"{backing} is made of {', '.join(names)}. Scheduler and queue depth are settings of"
            f" {several}; ebbgate paces write-back to {backing} as a whole.",
        )


def _of_paths(facts: Facts, backing: str, names: list[str]) -> str:
    queues = ", ".join(device.name for device, _ in facts.queues)
    on = "" if queues == backing else f" is made of {queues}, which"
    return (
        f"{backing}{on} has the paths {', '.join(names)}. The I/O scheduler is a setting of"
        f" {queues}, the queue depth one of each path; ebbgate paces write-back to {backing} as a"
        " whole."
    )
