# SPDX-License-Identifier: GPL-2.0-only
"""Reads the power state of a volume's disks, and asks only those that seem to rest.

I/O: sysfs, and commands to the disks, which may hang: on a thread. A disk that had a request since
the last look turns. It is not asked: its queue would have to drain first, since CHECK POWER MODE
cannot be queued with others (drivers/ata/libata-scsi.c, ata_scmd_need_defer). Nor is one that the
kernel itself has suspended: a command would wake it. Where the kernel suspends idle disks, only the
kernel is asked: each command to the disk would count as use of it (block/blk-pm.c), and with an
autosuspend delay above the time between two questions the disk would never be suspended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ebbgate.kernel import disk_power
from ebbgate.kernel.sysfs import BLOCK, Sysfs
from ebbgate.model.power import DiskPower, PowerState, of_all
from ebbgate.model.volume import Device

# Documentation/block/stat.rst: the columns of requests read, written and in flight.
_READS, _WRITES, _IN_FLIGHT = 0, 4, 8


@dataclass(slots=True)
class DiskPowerReader:
    """Reads the state of these disks. `ask`: asks the disk of a device node."""

    sysfs: Sysfs
    disks: tuple[Device, ...]
    ask: Callable[[Path], DiskPower] = disk_power.ask
    _requests: dict[str, int] = field(default_factory=dict)

    def read(self) -> DiskPower:
        """Return the state of the disk that is most awake."""
        return of_all([self._read(disk) for disk in self.disks])

    def _read(self, disk: Device) -> DiskPower:
        name = disk.name
        if not (disk.rotational and name.startswith("sd")):
            return DiskPower(PowerState.UNKNOWN, f"{name} is no hard disk of SCSI, SAS or SATA")
        power = BLOCK / name / "device/power"
        if self.sysfs.read_text(power / "runtime_status") == "suspended":
            return DiskPower(PowerState.STANDBY)
        if self._used(name) or self._suspends(power):
            return DiskPower(PowerState.ACTIVE)
        found = self.ask(Path("/dev") / name)
        return DiskPower(found.state, f"{name}: {found.why}") if found.why else found

    def _suspends(self, power: Path) -> bool:
        """Does the kernel suspend this disk once it is idle? A negative delay means never."""
        delay_ms = self.sysfs.read_int(power / "autosuspend_delay_ms")
        automatic = self.sysfs.read_text(power / "control") == "auto"
        return automatic and delay_ms is not None and delay_ms >= 0

    def _used(self, name: str) -> bool:
        """Had it a request since the last look? A flush does not count: it may not wake it."""
        text = self.sysfs.read_text(BLOCK / name / "stat") or ""
        counts = [int(word) for word in text.split() if word.isdigit()]
        if len(counts) <= _IN_FLIGHT:
            return False
        done = counts[_READS] + counts[_WRITES]
        before = self._requests.get(name)
        self._requests[name] = done
        return counts[_IN_FLIGHT] > 0 or before not in (None, done)
