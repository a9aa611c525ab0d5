# SPDX-License-Identifier: GPL-2.0-only
"""Advice for single hard disks: what of the write-back in a gap delays the next request. Pure.

An array, a virtual disk or an SSD gets none of it. Figures of the lab are of one modelled disk
with NCQ (pieces of 64 KiB; where nothing else is said of bcache, in gaps of 2.5 s or so).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ebbgate.doctor import evidence
from ebbgate.doctor.advice_disks import DEPTH_MAX, disk_advice
from ebbgate.doctor.model import Advice, DiskKind, Facts, Weight, device_name
from ebbgate.knobs.catalog import QUEUE_DEPTH
from ebbgate.model.decision import DISK_QUEUE
from ebbgate.model.volume import Device, Kind
from ebbgate.policy.strategies import disk_queue
from ebbgate.signals.gaps import reaching
from ebbgate.units import NS_PER_S

SHALLOW_BELOW: Final = 8
# With the AHCI driver of older kernels a SATA disk takes 31.
SATA_DEPTH: Final = 31
DEFAULT_POLICY: Final = "adaptive"
_POWER_CUT: Final = {
    # write_dirty_finish (drivers/md/bcache/writeback.c) marks a key clean without a flush.
    Kind.BCACHE: "A power cut loses what is in it, and bcache counts that as written back already.",
    # After a crash all blocks count as dirty (drivers/md/dm-cache-metadata.c, clean_when_opened).
    Kind.DM_CACHE: "A power cut loses what is in it; dm-cache then writes everything back again.",
}
_CRYPT_KEEPS_CLASS: Final = (6, 9)
"""The first kernel (drivers/md/dm-crypt.c, crypt_alloc_buffer); tests/lab/test_io_class.py."""
_POLICY_DIR: Final = "/etc/ebbgate/policies.d"
_LONG_GAP_NS: Final = 8 * NS_PER_S
"""In the lab throttling made a difference in gaps of 10 s, and none in those of 2.5 s."""


def _single_disks(facts: Facts) -> Iterator[tuple[Device, str]]:
    """Yield each single hard disk, and its name; partitions of one disk are the same disk."""
    seen = set()
    for device in facts.disks:
        disk = facts.disk(device.name)
        single = device.rotational and facts.kind(device.name) is DiskKind.SINGLE
        if single and disk not in seen:
            seen.add(disk)
            yield device, disk


def short_queue(facts: Facts) -> Iterator[Advice]:
    """EBB-105: bcache on hard disks that could hold write-back back by themselves."""
    disks = _disks_for_bfq(facts)
    words = {device.scheduler for device, _ in disks}
    if (
        facts.volume.kind is not Kind.BCACHE
        or not disks
        or words <= {disk_queue.HOLDS_BACK}
        # EBB-101 comes first.
        or not words.isdisjoint({"none", None})
    ):
        return
    depth = max(device.queue_depth or 0 for device, _ in disks)
    text = (
        f"While {facts.volume.title} writes back, up to {depth} requests are inside"
        f" {_names(disks)}, where no I/O scheduler reorders them. With bfq and a short queue during"
        " gaps, write-back waits in the scheduler behind requests of users, and needs no other"
        " limit."
    )
    yield replace(
        _policy_advice(facts, "EBB-105", text, disks),
        effect="in the lab, without a write cache, ebbgate wrote 260 MiB back in gaps of 1.5 to"
        " 3.5 s with bfq and 262 MiB with mq-deadline, the kernel alone 15 and 11 MiB; the slowest"
        " hundredth of reads after a gap took 1.2 times as long as without write-back with bfq, and"
        " twice as long with mq-deadline",
    )


def throttled(facts: Facts) -> Iterator[Advice]:
    """EBB-112: dm-cache on hard disks, below which the kernel throttles writes."""
    disks = _disks_for_bfq(facts)
    counts = facts.status.totals.gap_counts
    if (
        facts.volume.kind is not Kind.DM_CACHE
        or not disks
        # 6.1 shows a value below bfq, too, where it is off.
        or {device.scheduler for device, _ in disks} != {"mq-deadline"}
        or not all(device.wbt_lat_usec for device, _ in disks)
        or (counts and reaching(counts, _LONG_GAP_NS) < 1)
    ):
        return
    text = (
        f"While {facts.volume.title} writes back, the kernel's throttling of writes"
        f" (queue/wbt_lat_usec) lets 12 blocks at once go to {_names(disks)}: too few to be written"
        " in a good order. With bfq the kernel turns it off, unless somebody has written it since"
        " boot, and with a short queue in gaps requests of users pass write-back."
    )
    yield replace(
        _policy_advice(facts, "EBB-112", text, disks),
        effect="in the lab, without a write cache, ebbgate wrote 203 MiB back in gaps of 10 s with"
        " bfq and 145 MiB with mq-deadline, the kernel alone 153 and 158 MiB; in gaps of 2.5 s 18"
        " and 19 MiB (one run each)",
    )


def _disks_for_bfq(facts: Facts) -> list[tuple[Device, str]]:
    """Return the hard disks below a volume, and their names; none where bfq would not help."""
    disks = list(_single_disks(facts))
    drives = [facts.drive(device.name) for device, _ in disks]
    if (
        not facts.volume.cached
        or len(disks) != len({facts.disk(device.name) for device in facts.disks})
        or not all(drive.depth_settable and not drive.users.volumes for drive in drives)
        # What a short queue in the paths does was not measured.
        or facts.multipath
        or _holds_back(facts)
    ):
        return []
    return disks


def _names(disks: list[tuple[Device, str]]) -> str:
    return " and ".join(disk for _, disk in disks)


def _policy_advice(facts: Facts, number: str, text: str, disks: list[tuple[Device, str]]) -> Advice:
    """Return advice to write a policy; a note where a disk's write cache spoils the effect."""
    volume, policy = facts.volume.title, facts.status.policy or DEFAULT_POLICY
    measured = evidence.gaps(facts.status)
    cached = [disk for device, disk in disks if facts.drive(device.name).cache_file]
    text += (
        " What is set in queue/iosched comes back with the disk's own scheduler; bfq has the"
        " kernel's defaults."
    )
    shared = [f"{disk} also serves {users}" for disk, users in _others(facts)]
    if shared:
        text += f" {'; '.join(shared)}: these requests would share the short queue."
    if cached:
        text += f" First switch the write cache of {' and '.join(cached)} off (EBB-107)."
    weight = Weight.NOTE if cached else measured.weight
    advice = Advice(number, weight, volume, text, evidence=measured.text)
    key = "backing_scheduler: bfq"
    if policy != DEFAULT_POLICY:
        return replace(advice, text=f"{text} Add to its policy {policy}: {key}.")
    name = f"short-queue-{facts.volume.name}"
    rule = f"{{version: 1, name: {name}, match: {{volume: {volume}}}, {key}}}"
    return replace(
        advice,
        command=f"echo '{rule}' | sudo tee {_POLICY_DIR}/{name}.yaml",
        undo=f"sudo rm {_POLICY_DIR}/{name}.yaml",
        lasts="It survives reboots. ebbgate reads it within two seconds; it acts in enforce only,"
        " and gives scheduler and depth back afterwards.",
    )


def shared_disk(facts: Facts) -> Iterator[Advice]:
    """EBB-108: a disk whose queue would be short in gaps, or is, and that others use, too."""
    title = facts.volume.title
    for device in facts.disks:
        disk = facts.disk(device.name)
        drive = facts.drive(device.name)
        queue = facts.multipath.get(disk, device)
        if drive.users.volumes and queue.scheduler == disk_queue.HOLDS_BACK:
            text = (
                f"{disk} is below {', '.join(drive.users.volumes)}, too. A gap of {title} is none"
                " of another volume, so the queue of this disk stays as it is."
            )
            yield Advice("EBB-108", Weight.NOTE, title, text)
    for disk, others in _others(facts) if _holds_back(facts) else ():
        text = f"{disk} also serves {others}. In gaps of {title} it shares the short queue."
        yield Advice("EBB-108", Weight.NOTE, title, text)


def _others(facts: Facts) -> list[tuple[str, str]]:
    """Return disks of no other volume that file systems or swap use directly, and which."""
    users = ((disk, drive.users) for disk, drive in facts.drives.items())
    return [(disk, ", ".join(each.others)) for disk, each in users if each.others]


def _holds_back(facts: Facts) -> bool:
    conditions = (each for found in facts.status.proposals for each in found.conditions)
    return any(each.signal == DISK_QUEUE and each.holds for each in conditions)


def shallow(facts: Facts) -> Iterator[Advice]:
    """EBB-106: a queue that somebody has left short."""
    for device, disk in _single_disks(facts):
        depth, drive = device.queue_depth, facts.drive(device.name)
        if (
            depth is None
            or depth >= SHALLOW_BELOW
            or not drive.depth_settable
            or f"{QUEUE_DEPTH}:{disk}" in facts.owned
        ):
            continue
        off = drive.sata and depth == 1
        text = (
            f"{disk} takes one request at a time: at 1 the kernel switches NCQ off."
            if off
            else f"{disk} takes only {depth} requests at once, and ebbgate has not set that."
        )
        text += (
            " So the disk cannot order the requests of users who work in parallel. ebbgate makes"
            " the queue short in gaps only, below bfq."
        )
        if off:
            text += " If the kernel refuses the command, the disk or its controller has no NCQ."
        yield disk_advice(
            "EBB-106",
            Weight.ADVICE if off else Weight.NOTE,
            disk,
            text,
            ("device/queue_depth", SATA_DEPTH if drive.sata else DEPTH_MAX, depth),
            "parallel requests are faster: with 32 random reads at once the lab's disk needed less"
            " than half of the time for each",
        )


def write_cache(facts: Facts) -> Iterator[Advice]:
    """EBB-107: a volatile write cache, which takes write-back away from every scheduler."""
    if not facts.volume.cached or facts.volume.kind not in _POWER_CUT:
        return
    for device, disk in _single_disks(facts):
        file = facts.drive(device.name).cache_file
        if not file:
            continue
        attribute = f"device/scsi_disk/{file.split('/')[-2]}/cache_type"
        node = f"/dev/{device_name(disk)}"
        advice = disk_advice(
            "EBB-107",
            Weight.NOTE,
            disk,
            f"The write cache of {disk} is on. No I/O scheduler holds back what write-back leaves"
            " in it: reads after a gap wait while the disk writes it, and ebbgate writes back less"
            f" in the next gaps for them. {_POWER_CUT[facts.volume.kind]}",
            (attribute, '"write through"', '"write back"'),
            "in the lab, with bfq and gaps of 1.5 to 3.5 s, ebbgate wrote 260 MiB back in a gap"
            " instead of 127, and reads after it took as long as without write-back, not 1.1 times"
            " as long; in gaps of the same length, whose end it foresees, 219 MiB (172 to 222 in"
            " three runs) instead of 122 (92 to 274)",
        )
        yield replace(
            advice,
            evidence=evidence.gaps(facts.status).text,
            lasts="Most disks switch it on again when they lose power, and some after a suspend. To"
            f" switch it off at each boot, run `hdparm -W0 {node}` there, or put this line"
            " into /etc/udev/rules.d/60-ebbgate.rules (match ENV{ID_SERIAL} instead of KERNEL if"
            " disk names change from boot to boot):",
            keep=_cache_rule(disk),
        )


def encrypted(facts: Facts) -> Iterator[Advice]:
    """EBB-110: dm-crypt below bcache, on a kernel whose dm-crypt loses the class of write-back."""
    version = re.match(r"(\d+)\.(\d+)", facts.kernel)
    if facts.volume.kind is not Kind.BCACHE or not facts.volume.cached or version is None:
        return
    if tuple(map(int, version.groups())) >= _CRYPT_KEEPS_CLASS:
        return
    for name in facts.encrypted:
        text = (
            f"{name} below {facts.volume.title} is encrypted. dm-crypt gives up the idle I/O class"
            f" of write-back in kernels before 6.9 (this is {facts.kernel}, unless it has that"
            " change, too), so no I/O scheduler serves users before it: their first request after"
            " a gap may wait longer. A newer kernel is the remedy."
        )
        yield Advice("EBB-110", Weight.NOTE, facts.volume.title, text)


def _cache_rule(disk: str) -> str:
    """Return a rule for the disk's write cache, whatever its SCSI address is at that boot."""
    return (
        f'ACTION=="add|change", KERNEL=="{device_name(disk)}",'
        ' ATTR{device/scsi_disk/*/cache_type}="write through"'
    )
