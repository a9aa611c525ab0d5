# SPDX-License-Identifier: GPL-2.0-only
"""What was last requested of a volume's knobs, and which request a knob belongs to. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from ebbgate.actuators.volume_knobs import VolumeKnobs
from ebbgate.knobs.catalog import CONGESTED, CUTOFF, MAX_SECTORS, NR_REQUESTS, SCHEDULER, WBT
from ebbgate.knobs.places import disk_knobs
from ebbgate.model.decision import Gate


@dataclass(slots=True)
class Applied:
    """What was last requested of the gate worker."""

    gate: Gate | None = None
    cutoff_bytes: int | None = None
    congestion_off: bool = False
    split: bool = False
    scheduler: str = ""
    nr_requests: int | None = 0
    wbt_lat_usec: int | None = None

    def forget(self, knob: str, knobs: VolumeKnobs) -> None:
        """Forget the last request that this knob belongs to."""
        if knob in knobs.plan.knobs:
            self.gate = None
        elif knob == CUTOFF:
            self.cutoff_bytes = None
        elif knob == MAX_SECTORS:
            self.split = False
        elif knob in CONGESTED:
            self.congestion_off = False
        elif knob in disk_knobs(knobs.volume, SCHEDULER):
            self.scheduler = ""
        elif knob in disk_knobs(knobs.volume, NR_REQUESTS):
            # Also 0 is requested again: it is journalled as long as a scheduler is switched.
            self.nr_requests = None
        elif knob in disk_knobs(knobs.volume, WBT):
            self.wbt_lat_usec = None

    def drives(self, knob: str, knobs: VolumeKnobs) -> bool:
        """Return whether a request is in force that this knob belongs to."""
        if knob in (*knobs.plan.knobs, *knobs.plan.queues):
            return self.gate is not None
        if knob == CUTOFF:
            return self.cutoff_bytes is not None
        if knob == MAX_SECTORS:
            return self.split
        if knob in CONGESTED:
            return self.congestion_off
        if knob in disk_knobs(knobs.volume, WBT):
            return self.wbt_lat_usec is not None
        queues = (*disk_knobs(knobs.volume, SCHEDULER), *disk_knobs(knobs.volume, NR_REQUESTS))
        return knob in queues and bool(self.scheduler or self.nr_requests)
