# SPDX-License-Identifier: GPL-2.0-only
"""Owns the pinned files: those in force, and their rows in `overrides.db`.

I/O: the database, through its writer. The event loop calls it; it never blocks. A pin is on the
disk before it is in force. It ends at once and is ended on the disk later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from ebbgate.daemon.chosen_rows import Followed, placed, stable_uuid
from ebbgate.daemon.override_registry import Writer
from ebbgate.errors import EbbgateError
from ebbgate.intents.database import OverrideDatabase
from ebbgate.log_messages.volumes import OVERRIDES_FOLLOWED, PIN_ENDED, PIN_INVALID
from ebbgate.model.pin import Pin
from ebbgate.units import NS_PER_S

_LOG = logging.getLogger(__name__)
_RETRY_NS: Final = 10 * NS_PER_S
"""How often reading and writing the database is repeated after a failure."""


@dataclass(slots=True)
class PinRegistry:
    """The pins in force, by number. `loaded`: whether the database was read."""

    writer: Writer
    wall_ns: Callable[[], int] = time.time_ns
    now_ns: Callable[[], int] = time.monotonic_ns
    pins: dict[int, Pin] = field(default_factory=dict)
    _unsaved: dict[int, str] = field(default_factory=dict)
    _moved: dict[int, Pin] = field(default_factory=dict)
    loaded: bool = False
    _tried_ns: int | None = None
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def of(self, volume: str) -> list[Pin]:
        """Return the pins of a volume, oldest first."""
        return [pin for pin in self.pins.values() if pin.volume == volume]

    async def load(self) -> None:
        """Put in force what the database has, once. Raises EbbgateError."""
        async with self._changing:
            if self.loaded:
                return
            found, wrong = await asyncio.wrap_future(
                self.writer.submit(lambda database: database.load_pins())
            )
            self.loaded = True
        for text in wrong:
            _LOG.error(PIN_INVALID, text)
        self.pins = {pin.id: pin for pin in found} | self.pins

    def place(self, present: Mapping[str, Followed]) -> None:
        """Give each volume that is present its pins, under whatever name they were made."""
        for name, loop in present.items():
            uuid = stable_uuid(loop.volume)
            for pin in list(self.pins.values()):
                # Nearly always all are in place, and the event loop must not wait for this.
                unnamed = pin.volume == name and not pin.device_uuid
                if not unnamed and (pin.device_uuid != uuid or pin.volume == name):
                    continue
                new = placed(pin, loop.volume, present)
                if new is None or new == pin:
                    continue
                self.pins[pin.id] = self._moved[pin.id] = new
                if pin.volume != name:
                    _LOG.warning(OVERRIDES_FOLLOWED, name, pin.volume, f"pin {pin.id}, {pin.path}")

    def mounted(self, pin: Pin, mount: str | None) -> None:
        """Keep where the file system of a pin is mounted now."""
        known = self.pins.get(pin.id)
        if known is not None and mount is not None and known.mount != mount:
            self.pins[pin.id] = self._moved[pin.id] = replace(known, mount=mount)

    async def add(self, pin: Pin) -> Pin:
        """Store a pin and put it in force. Raises EbbgateError: then it is neither."""
        adding = self.writer.submit(lambda database: database.add_pin(pin))
        try:
            kept = await asyncio.wrap_future(adding)
        except asyncio.CancelledError:
            adding.add_done_callback(self._unkeep)
            raise
        self.pins[kept.id] = kept
        return kept

    def _unkeep(self, adding: Future[Pin]) -> None:
        """End on the disk what was written after its request was given up."""
        if not adding.cancelled() and adding.exception() is None:
            self._unsaved[adding.result().id] = "it timed out"

    def end(self, pin: Pin, why: str) -> None:
        """End a pin; its data stays in the cache until the kernel needs the room."""
        if self.pins.pop(pin.id, None) is not None:
            self._unsaved[pin.id] = why
            _LOG.info(PIN_ENDED, pin.volume, pin.id, pin.path, why)

    async def saved(self) -> None:
        """Wait until what has ended or has moved is on the disk. Raises EbbgateError."""
        batch, moved, wall = dict(self._unsaved), dict(self._moved), self.wall_ns()
        if not batch and not moved:
            return

        def write(database: OverrideDatabase) -> None:
            database.end_pins(batch, wall)
            database.place_pins(moved.values())

        await asyncio.wrap_future(self.writer.submit(write))
        for number in batch:
            self._unsaved.pop(number, None)
        for number, pin in moved.items():
            if self._moved.get(number) is pin:
                del self._moved[number]

    async def keep_up(self) -> None:
        """Load, and write what has ended; what fails is repeated after some time."""
        if self.loaded and not self._unsaved and not self._moved:
            return
        now = self.now_ns()
        if self._tried_ns is not None and now - self._tried_ns < _RETRY_NS:
            return
        self._tried_ns = now
        # The writer logs that the disk failed.
        with suppress(EbbgateError):
            await self.load()
            await self.saved()
            self._tried_ns = None
