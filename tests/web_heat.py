# SPDX-License-Identifier: GPL-2.0-only
"""Makes what a history for the web says of misses by place, of promote_hot, of warm-ups and pinned
files. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import Any, Final

from ebbgate.control.heat_status import heat_status
from ebbgate.control.promotion_status import promotion_status
from ebbgate.model.attribution import AttributionStatus, MissedBy
from ebbgate.model.heat import CHUNK_BYTES, ChunkRun, VolumeLayout
from ebbgate.model.owners import NO_OWNERS, owners_of
from ebbgate.model.pin import PinState, PinStatus
from ebbgate.model.promotion import MoverState, MoverStatus, Promotion
from ebbgate.model.status import LayoutStatus, VolumeStatus
from ebbgate.model.status_json import status_to_json
from ebbgate.model.volume import Mode
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.policy.strategies.promote_benefit import Benefit, Measured, Watched, held_out
from ebbgate.policy.strategies.promote_choice import Plan
from ebbgate.policy.strategies.promote_hot import PromotePhase, PromoteState
from ebbgate.policy.strategies.promote_share import TimeShare
from ebbgate.signals.recent_misses import RecentMisses
from ebbgate.units import GIB, MIB, NS_PER_S

_VOLUME_BYTES: Final = 8 * GIB
_CHUNKS: Final = _VOLUME_BYTES // CHUNK_BYTES
_HOT: Final = ((700, 60, 90.0), (2900, 160, 40.0), (6100, 30, 160.0))
"""Where the misses are: the middle, the width in chunks, and misses per chunk."""
GUEST_DISK: Final = "/srv/virtual-machines/customer-database-production/system-disk.qcow2"
_LAYOUT: Final = VolumeLayout(
    0,
    ("db.orders", f"{GUEST_DISK}, guest:/var/lib/mysql/shop/items.ibd", "db.orders_pkey"),
    (ChunkRun(560, 1100, 0), ChunkRun(2600, 3300, 1), ChunkRun(6050, 6160, 2)),
)
_MISSED_BY: Final = AttributionStatus(
    observed_ns=171 * NS_PER_S,
    cgroups=(
        MissedBy("/system.slice/postgresql@15-main.service", 41_200, 1_930),
        MissedBy("", 310, 0),
    ),
    cgroups_others=44,
    files=(
        MissedBy(f"{GUEST_DISK}, guest:/var/lib/mysql/shop/items.ibd", 23_400, 0),
        MissedBy("", 9_800, 1_930),
        MissedBy("inode 262177 on 253:4", 812, 7),
    ),
)


def heat_parts(mode: Mode) -> dict[str, Any]:
    """Return `heat`, `attribution`, `promotion` and `layout` of a document.

    In `enforce` chunks of known files are moved, in `advise` they would be, without any file known;
    in `observe` there is no promote_hot.
    """
    recent = RecentMisses(_misses(), 420.0, 171.0 * NS_PER_S, NS_PER_S)
    if mode is Mode.OBSERVE:
        found = VolumeStatus(heat=heat_status(recent, NO_OWNERS, PromoteState(), _VOLUME_BYTES))
    else:
        layout = _LAYOUT if mode is Mode.ENFORCE else None
        state, mover = _state(recent, mode)
        state = replace(state, owners=owners_of(NO_OWNERS, layout))
        found = VolumeStatus(
            heat=heat_status(recent, state.owners, state, _VOLUME_BYTES),
            attribution=_MISSED_BY,
            promotion=promotion_status(state, mover, _reason(state)),
            layout=LayoutStatus(3, 1350 * MIB, {}, NS_PER_S) if layout else None,
        )
    document = status_to_json(found)
    return {key: document[key] for key in ("heat", "attribution", "promotion", "layout")}


def warm_parts() -> dict[str, Any]:
    """Return `jobs` and `pins` of a document: under way and over, with long names."""
    left_out = {"compressed or otherwise encoded": 12 * MIB}
    jobs = (
        JobStatus(1, GUEST_DISK, JobState.FAILED, "admin", "the file was replaced"),
        JobStatus(
            *(
                2,
                GUEST_DISK,
                JobState.WAITING,
                "admin",
                "users need the disk: one read for 400 of theirs, or every 10 s",
            ),
            *(70 * MIB, 700 * MIB, 20 * MIB),
            left_out=left_out,
        ),
    )
    pins = (
        PinStatus(1, GUEST_DISK, PinState.HOT, "admin", "", 700 * MIB, 0.21, 0.998, NS_PER_S),
        PinStatus(2, "/srv/db/orders", PinState.ABSENT, "admin", "not looked at yet"),
    )
    document = status_to_json(VolumeStatus(jobs=jobs, pins=pins))
    return {key: document[key] for key in ("jobs", "pins")}


def _misses() -> dict[int, float]:
    """Return misses by chunk, the same each time."""
    found: dict[int, float] = {}
    for middle, width, most in _HOT:
        for chunk in range(middle - 2 * width, middle + 2 * width):
            near = exp(-(((chunk - middle) / width) ** 2))
            found[chunk] = most * near * (0.5 + (chunk * 37 % 97) / 97)
    for chunk in range(0, _CHUNKS, 41):
        found.setdefault(chunk, 1.0 + chunk % 3)
    return {chunk: misses for chunk, misses in found.items() if misses >= 1}


def _state(recent: RecentMisses, mode: Mode) -> tuple[PromoteState, MoverStatus]:
    hottest = sorted(recent.chunks, key=recent.chunks.__getitem__, reverse=True)[:220]
    listed = {
        chunk: Watched(1, recent.chunks[chunk] / 171, held_out(chunk, 1)) for chunk in hottest
    }
    moves = [chunk for chunk, each in listed.items() if not each.held_out]
    done = moves[2::3] if mode is Mode.ENFORCE else []
    left = tuple(chunk for chunk in moves if chunk not in done)
    plan = Plan(
        at_ns=1,
        listed=listed,
        promotion=Promotion(left, 0.35),
        done=frozenset(done),
        admitted=len(hottest),
        best_ns=9e8,
        least_ns=3e8,
    )
    state = PromoteState(PromotePhase.MOVE, period=9, plan=plan, share=TimeShare(share=0.35))
    if mode is not Mode.ENFORCE:
        return state, MoverStatus()
    measured = Measured(len(done), 9, 31.0 * NS_PER_S, 4.0 * NS_PER_S, 35e9, 7e9)
    benefit = Benefit(
        last=measured, total_gain_ns=412e9, total_error_ns=38e9, total_cost_ns=104e9, ratio=0.9
    )
    in_cache = dict.fromkeys((*done, *range(2600, 2760, 3)))
    return (
        replace(state, benefit=benefit, in_cache=in_cache),
        MoverStatus(MoverState.MOVING, "", 1830, 12, 96 * NS_PER_S),
    )


def _reason(state: PromoteState) -> str:
    held = sum(each.held_out for each in state.plan.listed.values())
    done, total = len(state.plan.done), len(state.plan.listed) - held
    return f"moves: {done} of {total} MiB are moved, {held} held out to compare"
