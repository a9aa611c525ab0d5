# SPDX-License-Identifier: GPL-2.0-only
"""Reads the state of one volume on a thread of its own. I/O: sysfs and device-mapper, reads.

Most files of bcache take its global lock, which the kernel holds while a device is registered: a
read may then take minutes, and must keep neither the event loop nor another volume waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.background import BackgroundWorker
from ebbgate.model.volume import VolumeState
from ebbgate.probes.volume_state import read_state


class VolumeReader:
    """`writer`: the volume's; its `reading_since_ns` is set during a read."""

    def __init__(self, writer: KnobWriter) -> None:
        self._writer = writer
        self._worker = BackgroundWorker(f"read-{writer.volume.name}")

    async def read(
        self, now_ns: int, previous: VolumeState | None, fresh: Collection[str]
    ) -> VolumeState:
        """See probes.volume_state.read_state."""
        writer = self._writer

        def work() -> VolumeState:
            writer.reading_since_ns = writer.now_ns()
            try:
                return read_state(writer.sysfs, writer.volume, now_ns, previous, fresh)
            finally:
                writer.reading_since_ns = None

        return await asyncio.wrap_future(self._worker.submit(work))

    def end(self) -> None:
        """End the thread; no more reads follow."""
        self._worker.end()
