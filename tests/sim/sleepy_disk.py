# SPDX-License-Identifier: GPL-2.0-only
"""A simulated disk that stops after a while without a request. Pure: simulated time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ebbgate.model.power import DiskPower, PowerState
from ebbgate.units import NS_PER_S
from tests.sim.disk import Disk, Request

STANDBY_AFTER_NS = 600 * NS_PER_S
SPIN_UP_NS = 8 * NS_PER_S


class SleepyDisk(Disk):
    """`spin_ups`: how often a request has started it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.spin_ups = 0
        self._slept_ns = 0
        self._asleep_since_ns: int | None = None
        self._used_ns = 0
        self._pending = 0
        self._waiting_for_spin: list[Request] = []
        self._clock.after(STANDBY_AFTER_NS, self._maybe_stop)

    @property
    def asleep_ns(self) -> int:
        """How long it has stood still."""
        since_ns = self._asleep_since_ns
        return self._slept_ns + (0 if since_ns is None else self._clock.now_ns - since_ns)

    @property
    def power(self) -> DiskPower:
        """What CHECK POWER MODE tells; it starts nothing."""
        asleep = self._asleep_since_ns is not None
        return DiskPower(PowerState.STANDBY if asleep else PowerState.ACTIVE)

    def submit(self, request: Request) -> None:
        """Queue a request; the first one that finds the platters still waits for them."""
        self._pending += 1
        awake = replace(request, done=lambda: self._ended(request.done))
        if self._asleep_since_ns is not None:
            self._slept_ns = self.asleep_ns
            self._asleep_since_ns = None
            self.spin_ups += 1
            self._waiting_for_spin = [awake]
            self._clock.after(SPIN_UP_NS, self._turn)
        elif self._waiting_for_spin:
            self._waiting_for_spin.append(awake)
        else:
            super().submit(awake)

    def wake(self) -> None:
        """Read a block for somebody who is no user of the volume."""
        self.submit(Request(0, 4096, destage=False, done=lambda: None))

    def _turn(self) -> None:
        waited, self._waiting_for_spin = self._waiting_for_spin, []
        for request in waited:
            super().submit(request)

    def _ended(self, done: Callable[[], None]) -> None:
        self._pending -= 1
        self._used_ns = self._clock.now_ns
        if not self._pending:
            self._clock.after(STANDBY_AFTER_NS, self._maybe_stop)
        done()

    def _maybe_stop(self) -> None:
        rested = self._clock.now_ns - self._used_ns >= STANDBY_AFTER_NS
        if rested and not self._pending and self._asleep_since_ns is None:
            self._asleep_since_ns = self._clock.now_ns
