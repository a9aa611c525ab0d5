# SPDX-License-Identifier: GPL-2.0-only
"""The machine on which this runs, for lives of the actuators that are disturbed.

I/O: knobs of the kernel, files of one folder, children of this process.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.places import knob_path
from ebbgate.probes.topology import find
from tests.knob_life import Home, wrong
from tests.stop_harness import Machine
from tests.syscalls import Child

_BY_KERNEL = ("writeback_rate",)
"""The kernel itself writes it every few seconds, so a new value means nothing."""


class RealMachine(Machine):
    """One real volume, without snapshots: the kernel's state is no file."""

    @classmethod
    def of(cls, volume_name: str, folder: Path) -> Self:
        """`folder`: for the journal; it is emptied at each reset."""
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        sysfs = Sysfs()
        home = Home(sysfs, folder / "state", boot_id)
        made = cls(folder, find(sysfs, volume_name), home, {})
        made.originals = made.values()
        return made

    def reset(self) -> None:
        """Empty the journal and restore what the last life left changed."""
        shutil.rmtree(self.home.folder, ignore_errors=True)
        self.home.folder.mkdir(parents=True)
        # Made here: each life makes the same calls then.
        assert self.home.left() == []
        for knob in self.wrong():
            path = knob_path(self.volume, knob)
            assert path is not None
            self.home.sysfs.write_text(path, self.originals[knob])

    def wrong(self, by_administrator: str = "") -> dict[str, str]:
        return wrong(self.originals, self.values(), by_administrator)

    def child(self, work: Callable[[], object] | None = None) -> Child:
        below: tuple[str | Path, ...] = (self.home.folder, "/sys/", "/dev/mapper/control")
        return Child(work or (lambda: self.home.live(self.volume)), below)

    def values(self) -> dict[str, str]:
        found = self.home.values(self.volume)
        return {knob: value for knob, value in found.items() if knob not in _BY_KERNEL}
