# SPDX-License-Identifier: GPL-2.0-only
"""What advice is, and what it is given to look at. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ebbgate.doctor.disk_kind import DiskKind
from ebbgate.model.volume import Device, Volume, VolumeState


class Weight(StrEnum):
    """How much it matters. `fault`: data or tuning is at risk; `advice`: measured here, or harmful
    whatever the load is; `note`: worth knowing, or nothing was measured that speaks for it.
    """

    FAULT = "fault"
    ADVICE = "advice"
    NOTE = "note"


SEVERITY: Final[Mapping[Weight, str]] = {
    Weight.FAULT: "Problem",
    Weight.ADVICE: "Recommended",
    Weight.NOTE: "Info",
}
"""The weight in the words that people read."""


@dataclass(frozen=True, slots=True)
class Change:
    """What `ebbgate apply` does: knobs that ebbgate writes anyway, as the kernel takes them, or one
    command of LVM that is safe while the volume is in use, with the one that takes it back.
    """

    knobs: tuple[tuple[str, str], ...] = ()
    argv: tuple[str, ...] = ()
    undo_argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do or to know.

    `text`: whole sentences. `command`: does it by hand, as it is pasted into a shell; empty where
    none does. `lasts`: what of it survives a reboot, empty without a command; `keep`: a line for
    the file that `lasts` names, where that is how to keep it. `evidence`: what was measured here,
    empty without a daemon; `effect`: what to expect. `change`: None where it is the
    administrator's alone.
    """

    id: str
    weight: Weight
    about: str
    text: str
    command: str = ""
    lasts: str = ""
    keep: str = ""
    evidence: str = ""
    effect: str = ""
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the rules look at. `disks`: at the bottom of the backing device, often itself.

    `kinds`: by device name; `whole_disks`: the disk of each device that is a partition. `held`:
    knobs that ebbgate holds now. `discards`: cache devices with `discard` on; `io_errors`: counts
    by device name. `cachevol`: does one LV hold data and metadata of dm-cache? None: not known.
    `live`: what the daemon says of the volume, empty without one.
    """

    volume: Volume
    state: VolumeState
    disks: tuple[Device, ...]
    discards: tuple[str, ...] = ()
    held: frozenset[str] = frozenset()
    io_errors: dict[str, int] = field(default_factory=dict)
    live: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, DiskKind] = field(default_factory=dict)
    whole_disks: Mapping[str, str] = field(default_factory=dict)
    cachevol: bool | None = None

    def set_by_hand(self, knob: str) -> int | None:
        """The knob's value where ebbgate does not hold it; None where it does, or none is known."""
        value = self.state.knobs.get(knob, "")
        return int(value) if value.isdigit() and knob not in self.held else None

    def kind(self, device: str) -> DiskKind:
        """What kind of disk a device is, or is a part of."""
        return self.kinds.get(device, DiskKind.UNKNOWN)

    def disk(self, device: str) -> str:
        """The disk of a device: only that has a queue."""
        return self.whole_disks.get(device, device)

    @property
    def several_disks(self) -> bool:
        """Is the backing device known to be more than one disk?"""
        return len(self.disks) > 1 or any(
            self.kind(device.name) is DiskKind.ARRAY for device in self.disks
        )


def write_command(value: str | int, *files: str) -> str:
    """The command that writes a value into files of root's: a shell would open `> file` as the
    person who types, not as root.
    """
    return f"echo {value} | sudo tee {' '.join(files)}"


def udev_rule(disk: str, attribute: str, value: str | int) -> str:
    """The rule that sets an attribute of a disk whenever it appears."""
    return f'ACTION=="add|change", KERNEL=="{disk}", ATTR{{{attribute}}}="{value}"'


LASTS_UDEV: Final = (
    "Until the next boot. To keep it, put this line into /etc/udev/rules.d/60-ebbgate.rules (match"
    " ENV{ID_SERIAL} instead of KERNEL if disk names change from boot to boot):"
)
LASTS_LVM: Final = "It survives reboots: LVM keeps the setting in its metadata."


LASTS_KNOB: Final = (
    "By hand it lasts until the next boot, or until the volume is stopped. Applied with ebbgate it"
    " lasts over reboots, until it is released."
)
"""Of a bcache knob that `ebbgate apply` sets, too."""
LASTS_SYSFS: Final = "Until the next boot, or until the volume is stopped."
