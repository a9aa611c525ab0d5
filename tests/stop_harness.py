# SPDX-License-Identifier: GPL-2.0-only
"""A machine of files on which a life of the actuators can be stopped before any system call.

I/O: files below one folder, children of this process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Final

from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.catalog import THRESHOLD
from ebbgate.knobs.places import knob_path
from ebbgate.model.volume import Volume
from ebbgate.probes.topology import find
from tests.builders import dm_volume, volume
from tests.fake_dm import FakeCache, FakeDm, fake_lvm, lvm_disks
from tests.fake_sysfs import SET_UUID, WatchedSysfs, fake_bcache
from tests.knob_life import BY_ADMINISTRATOR, Home, knobs, wrong
from tests.syscalls import Call, Child

BOOT: Final = "this boot"
OTHER_SET_UUID: Final = SET_UUID.replace("1", "6")

Snapshot = Mapping[Path, bytes]


class DmOnFiles(FakeDm):
    """Keeps what a message has set in a file, so that another process sees it."""

    def __init__(self, folder: Path, *devices: FakeCache) -> None:
        super().__init__(*devices)
        self._folder = folder
        self._writing = False

    def find(self, ref: str) -> FakeCache:
        found = super().find(ref)
        kept = self._folder / found.name
        if kept.exists() and not self._writing:
            found.threshold = json.loads(kept.read_text())
        return found

    def message(self, ref: str, text: str) -> None:
        # A message is no look at the device.
        self._writing = True
        try:
            super().message(ref, text)
            self.keep(self.find(ref))
        finally:
            self._writing = False

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
    touched: Sequence[str] = ()
    """Knobs that did not have their originals when a life was stopped last."""
    made_as: Snapshot = field(default_factory=dict)

    @classmethod
    def bcache(cls, root: Path) -> Machine:
        """The ordinary volume of bcache."""
        fake_bcache(root / "sys")
        return cls._made(root, volume(), WatchedSysfs(root / "sys"))

    @classmethod
    def two(cls, root: Path) -> tuple[Machine, Volume]:
        """bcache0, and another volume beside it."""
        fake = fake_bcache(root / "sys")
        fake.disk("vdc", "254:32")
        fake.disk("vdd", "254:48", rotational=False)
        fake.bcache("bcache1", backing="vdc", cache="vdd", devno="252:128", set_uuid=OTHER_SET_UUID)
        other = find(fake.sysfs, "bcache1")
        return cls._made(root, volume(), WatchedSysfs(root / "sys")), other

    @classmethod
    def dm_cache(cls, root: Path) -> Machine:
        """LVM's vg/data."""
        devices = fake_lvm(lvm_disks(root / "sys")).devices
        (root / "dm").mkdir()
        dm = DmOnFiles(root / "dm", *devices)
        for device in devices:
            dm.keep(device)
        return cls._made(root, dm_volume(), WatchedSysfs(root / "sys", dm))

    @classmethod
    def _made(cls, root: Path, volume: Volume, sysfs: Sysfs) -> Machine:
        home = Home(sysfs, root / "state", BOOT)
        home.folder.mkdir()
        made = cls(root, volume, home, {})
        # An empty journal is there already: making one is not what is stopped here.
        assert home.left() == []
        made.originals = home.values(volume)
        made.made_as = made.snapshot()
        return made

    def reset(self) -> None:
        """As it was made."""
        self.load(self.made_as)

    def snapshot(self) -> Snapshot:
        """Every knob and every file of ebbgate, as a process that is killed now leaves them."""
        folders = [self.root / part for part in ("dm", "state") if (self.root / part).exists()]
        found = [file for folder in folders for file in folder.iterdir()]
        return {file: file.read_bytes() for file in (*self._knob_files(), *found)}

    def load(self, snapshot: Snapshot) -> None:
        """As it was then."""
        for file in self.snapshot().keys() - snapshot.keys():
            file.unlink()
        for file, content in snapshot.items():
            file.write_bytes(content)

    def _knob_files(self) -> list[Path]:
        paths = [str(knob_path(self.volume, knob)) for knob in knobs(self.volume)]
        return [self.home.sysfs.locate(path) for path in paths if path.startswith("/sys/")]

    def wrong(self, by_administrator: str = "") -> dict[str, str]:
        """Knobs that are not what they must be in the end."""
        return wrong(self.originals, self.home.values(self.volume), by_administrator)

    def child(self, work: Callable[[], object] | None = None) -> Child:
        """A process that lives, or does something else, on this machine."""
        return Child(work or (lambda: self.home.live(self.volume)), [self.root])

    @property
    def told(self) -> Path:
        """A file for what a child has to say, which nothing watches."""
        return self.root.with_name("told")

    def calls(self, work: Callable[[], object] | None = None) -> list[Call]:
        """Every system call of an undisturbed life."""
        self.reset()
        with self.child(work) as child:
            found = list(child.calls())
        assert child.exit_code == 0, f"an undisturbed life ended with {child.exit_code}"
        return found

    def moments(self, work: Callable[[], object] | None = None) -> list[tuple[Call, Snapshot]]:
        """Every system call of an undisturbed life, and what a kill just before it would leave."""
        with self.child(work) as child:
            found = [(call, self.snapshot()) for call in child.calls()]
        assert child.exit_code == 0
        return found

    def go_on_after(self, number: int, by_administrator: str) -> list[Call]:
        """A life beside which a person writes a knob before its call of this number, from 0; all of
        its calls. Their order is not always the same: the journal has a thread of its own.
        """
        with self.child() as child:
            found = [call for _ in range(number + 1) if (call := child.next_call())]
            self.home.administrator_writes(self.volume, by_administrator)
            found += child.calls()
        assert child.exit_code == 0
        return found

    def stop_at(
        self, number: int, by_administrator: str = "", work: Callable[[], object] | None = None
    ) -> Call | None:
        """A life that is killed before its call of this number, from 0; which call that was.

        `by_administrator`: a knob that a person writes at that moment. None: it ended before.
        """
        call = None
        with self.child(work) as child:
            for _ in range(number + 1):
                call = child.next_call()
            self.touched = sorted(self.wrong())
            if by_administrator:
                self.home.administrator_writes(self.volume, by_administrator)
        return call


def cannot_be_noticed(calls: Sequence[Call], number: int, knob: str) -> bool:
    """Is this moment between the last look at the knob and the look after its write?

    The kernel has no call that compares and writes in one step. And what is read back after a write
    may be what the kernel made of it. `DmOnFiles` replaces its file, where the kernel has one call:
    a look that has opened it before the administrator's write reads the old one.
    """
    before = [call for call in calls[:number] if knob_of(call) == knob]
    after = [call for call in calls[number:] if knob_of(call) == knob]
    if knob == THRESHOLD:
        after = list(dropwhile(lambda call: call.name == "read", after))
    written_next = bool(after) and Path(after[0].path).name.endswith(".new")
    just_written = bool(before) and before[-1].name == "rename"
    return written_next or just_written or (len(before) > 1 and before[-2].name == "rename")


def others(volume: Volume) -> list[str]:
    """Knobs that an administrator may write to a value of their own."""
    return [knob for knob in knobs(volume) if knob in BY_ADMINISTRATOR]


def next_knobs(calls: Sequence[Call], volume: Volume) -> list[str]:
    """For each call, the knob that is written next, or was written last."""
    found: list[str] = []
    knob = others(volume)[-1]
    for call in reversed(calls):
        named = knob_of(call)
        knob = named if named in others(volume) else knob
        found.append(knob)
    return found[::-1]


def knob_of(call: Call) -> str:
    """The knob whose file a call is about; empty for one of the journal."""
    name = Path(call.path).name.removeprefix(".").removesuffix(".new")
    return "migration_threshold" if name == "vg-data" else name
