# SPDX-License-Identifier: GPL-2.0-only
"""A machine of files on which a life of the actuators can be stopped before any system call.

I/O: files below one folder, children of this process.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.model.volume import Volume
from ebbgate.probes.knobs import knob_path, same_value
from ebbgate.sysfs import Sysfs
from tests.builders import mapped_volume, volume
from tests.fake_dm import FakeCache, FakeDm, fake_lvm
from tests.fake_sysfs import FakeSysfs, WatchedSysfs, fake_bcache
from tests.knob_life import Home, knobs
from tests.syscalls import Call, Child

BOOT: Final = "this boot"
BY_ADMINISTRATOR: Final[Mapping[str, str]] = {
    "writeback_delay": "17",
    "writeback_rate_update_seconds": "7",
    "writeback_percent": "23",
    "sequential_cutoff": "3145728",
    "migration_threshold": "7777",
    "max_sectors_kb": "96",
}
"""Values that are neither originals nor ebbgate's. Not of writeback_rate, which the kernel writes
itself, and not of a switch, which has no third value.
"""


class DmOnFiles(FakeDm):
    """Keeps what a message has set in a file, so that another process sees it."""

    def __init__(self, folder: Path, *devices: FakeCache) -> None:
        super().__init__(*devices)
        self._folder = folder

    def find(self, ref: str) -> FakeCache:
        found = super().find(ref)
        kept = self._folder / found.name
        if kept.exists():
            found.threshold = json.loads(kept.read_text())
        return found

    def message(self, ref: str, text: str) -> None:
        super().message(ref, text)
        found = next(each for each in self.devices if each is super(DmOnFiles, self).find(ref))
        self.keep(found)

    def keep(self, device: FakeCache) -> None:
        """In one step, as the kernel does."""
        new = self._folder / f"{device.name}.new"
        new.write_text(json.dumps(device.threshold))
        new.rename(self._folder / device.name)


@dataclass(slots=True)
class Machine:
    """One volume, and ebbgate's files beside it."""

    root: Path
    volume: Volume
    home: Home
    originals: Mapping[str, str]

    @classmethod
    def bcache(cls, root: Path) -> Machine:
        """The ordinary volume of bcache."""
        fake_bcache(root / "sys")
        return cls._made(root, volume(), WatchedSysfs(root / "sys"))

    @classmethod
    def dm_cache(cls, root: Path) -> Machine:
        """LVM's vg/data."""
        fake = FakeSysfs(root / "sys")
        fake.disk("vda", "254:0")
        fake.disk("vdb", "254:16", rotational=False)
        devices = fake_lvm(fake).devices
        (root / "dm").mkdir()
        dm = DmOnFiles(root / "dm", *devices)
        for device in devices:
            dm.keep(device)
        return cls._made(root, mapped_volume(), WatchedSysfs(root / "sys", dm))

    @classmethod
    def _made(cls, root: Path, volume: Volume, sysfs: Sysfs) -> Machine:
        home = Home(sysfs, root / "state", BOOT)
        home.folder.mkdir()
        made = cls(root, volume, home, {})
        made.originals = made.values()
        shutil.copytree(root, made._pristine, symlinks=True)
        return made

    @property
    def _pristine(self) -> Path:
        return self.root.with_name(f"{self.root.name}.pristine")

    def reset(self) -> None:
        """As it was made."""
        for part in ("dm", "state"):
            shutil.rmtree(self.root / part, ignore_errors=True)
            if (self._pristine / part).exists():
                shutil.copytree(self._pristine / part, self.root / part)
        for knob in knobs(self.volume):
            path = str(knob_path(self.volume, knob))
            if path.startswith("/sys/"):
                kept = Sysfs(self._pristine / "sys").locate(path)
                # The links of the copy lead into the original tree.
                text = _ORIGINAL_TEXT.setdefault(str(kept), kept.read_text())
                self.home.sysfs.locate(path).write_text(text)

    def values(self) -> dict[str, str]:
        """Every knob that a life writes, as it is now."""
        found = {knob: self.home.value(self.volume, knob) for knob in knobs(self.volume)}
        return {knob: value for knob, value in found.items() if value is not None}

    def administrator_writes(self, knob: str) -> None:
        """As a person does with echo or dmsetup."""
        path = knob_path(self.volume, knob)
        assert path is not None
        if str(path).startswith("dm:"):
            Sysfs.write_text(self.home.sysfs, path, BY_ADMINISTRATOR[knob])
        else:
            self.home.sysfs.locate(path).write_text(f"{BY_ADMINISTRATOR[knob]}\n")

    def wrong(self, by_administrator: str = "") -> dict[str, str]:
        """Knobs that are not what they must be in the end, with their values."""
        now = self.values()
        due = dict(self.originals)
        if by_administrator:
            due[by_administrator] = BY_ADMINISTRATOR[by_administrator]
        return {
            knob: f"{now.get(knob)}, not {value}"
            for knob, value in due.items()
            if not same_value(knob, value, now.get(knob, ""))
        }

    def child(self, work: Callable[[], object] | None = None) -> Child:
        """A process that lives, or does something else, on this machine."""
        return Child(work or (lambda: self.home.live(self.volume)), [self.root])

    def calls(self, work: Callable[[], object] | None = None) -> list[Call]:
        """Every system call of an undisturbed life."""
        with self.child(work) as child:
            found = list(child.calls())
        assert child.exit_code == 0
        return found

    def stopped(self, number: int, work: Callable[[], object] | None = None) -> Child:
        """A child that has made `number` calls and is about to make another."""
        child = self.child(work)
        for _ in range(number + 1):
            if child.next_call() is None:
                break
        return child


_ORIGINAL_TEXT: dict[str, str] = {}


def knob_of(call: Call) -> str:
    """The knob whose file a call is about; empty for one of the journal."""
    name = os.path.basename(call.path)  # noqa: PTH119
    return name.removeprefix(".").removesuffix(".new")
