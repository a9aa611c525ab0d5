# SPDX-License-Identifier: GPL-2.0-only
"""What stacks of device-mapper have in common: made, watched, and never left unclean unseen.

I/O: through a Session: LVM's tools, dmsetup, sysfs of the guest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypedDict, Unpack

from tests.lab import dm_parts, knobs
from tests.lab.dm_parts import MIB, Made
from tests.lab.errors import UncleanStack
from tests.lab.session import Session
from tests.lab.stack import trouble
from tests.lab.wait import wait_until

_QUEUES = tuple(
    f"{device}:queue/{name}"
    for device in ("volume", "hdd", "ssd")
    for name in ("scheduler", "max_sectors_kb", "read_ahead_kb")
)


class Options(TypedDict, total=False):
    """How a stack may be made; every one has a default."""

    hdd: str
    ssd: str
    """Names of the lab, hdd0 and ssd0 unless told otherwise."""
    lvm: bool
    """Through LVM (default), as volume VG/data; else bare device-mapper, under the same dm name,
    with the whole hard disk as its origin."""
    vg: str
    """Name of the volume group, default vg."""
    cache_bytes: int
    """Default 512 MiB, of which LVM takes 8 for the metadata of a cachevol."""
    scheduler: str
    """Of the backing device: mq-deadline (default, what Debian gives a SATA disk), none, bfq."""
    settings: Mapping[str, str | int]
    """Knobs set before the originals are noted, i.e. those of an administrator."""


class DmStack(ABC):
    """One slow and one fast device, joined by device-mapper to a volume.

    Entering makes it, applies `settings` and notes every knob. Leaving compares: a knob that
    differs without being named by `expect_changed`, a device-mapper device that was not there
    before, a warning of the kernel, or metadata that cache_check rejects raises UncleanStack;
    either way everything is taken down without writing back, so that the next can be made.
    """

    target = ""
    """device-mapper's name of what it is."""
    modules: tuple[str, ...] = ()

    def __init__(self, session: Session, **options: Unpack[Options]) -> None:
        self.session = session
        self.hdd = session.device(options.get("hdd", "hdd0"))
        self.ssd = session.device(options.get("ssd", "ssd0"))
        self.lvm = options.get("lvm", True)
        self.vg = options.get("vg", "vg")
        self.name = f"{self.vg.replace('-', '--')}-data"
        """As `dmsetup` has it, e.g. vg-data."""
        self.lvm_name = f"{self.vg}/data" if self.lvm else ""
        """As LVM has it, empty for a bare volume."""
        self.device = f"/dev/mapper/{self.name}"
        """Path of the volume in the guest."""
        self._cache_bytes = options.get("cache_bytes", 512 * MIB)
        self._scheduler = options.get("scheduler", "mq-deadline")
        self._settings = dict(options.get("settings", {}))
        self._may_differ: set[str] = set()
        self._made = Made()
        self.volume = ""
        """Kernel name, e.g. dm-0."""
        self.originals: dict[str, str] = {}
        """Every watched knob as it was on entering."""

    def __enter__(self) -> Self:
        dm_parts.prepare(self.session, self.modules)
        if self._scheduler == "bfq":
            self.session.check(["modprobe", "bfq"])
        self._next_message = max((r.number for r in self.session.kernel_log()), default=-1) + 1
        try:
            # Whatever a run that was broken off has left there.
            self._tear_down()
            self._join()
            self._made = dm_parts.find(self.session, self.name, self.hdd, self.ssd)
            self.volume = self._made.kernel_names["volume"]
            self._configure()
        except BaseException:
            self._tear_down()
            raise
        self.originals = self.knob_values()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        findings = self.findings()
        dm_parts.remove(self.session, self.hdd, self.ssd)
        findings += self._metadata_findings()
        self._tear_down()
        UncleanStack.told(findings, error)

    def dev_t(self, which: str) -> str:
        """MAJ:MIN of volume, origin, cache, metadata (what the volume's table names), hdd, ssd.

        A dm-writecache keeps its metadata on the cache device.
        """
        if which in ("hdd", "ssd"):
            block = self.hdd if which == "hdd" else self.ssd
            return self.session.read(f"/sys/block/{block}/dev")
        return self._made.dev_ts[which]

    def works(self) -> bool:
        """Whether the kernel has not given it up."""
        return not {"Fail", "Error"} & set(self.status_line().split())

    def status_line(self) -> str:
        """What `dmsetup status` says, without the commit of metadata that it would cause."""
        return self.session.check(["dmsetup", "status", "--noflush", self.name]).strip()

    def message(self, *words: str | int) -> None:
        """Send the target a message."""
        self.session.check(["dmsetup", "message", self.name, "0", *map(str, words)])

    @abstractmethod
    def dirty_bytes(self) -> int:
        """Data in the cache that is newer than that of the origin, in whole blocks."""

    @abstractmethod
    def drain(self, timeout_s: float = 300) -> None:
        """Have everything written back; restores the knobs it needs."""

    def wait_clean(self, timeout_s: float) -> None:
        """Wait until nothing is dirty; does nothing to bring it about."""
        wait_until(lambda: self.dirty_bytes() == 0, timeout_s, f"{self.name} to be clean")

    def knob(self, name: str) -> str:
        """A watched knob's value; KeyError if it is not there (any more)."""
        return self.knob_values()[name]

    def set_knob(self, name: str, value: str | int) -> None:
        """Set a knob of a queue, e.g. volume:queue/max_sectors_kb, or of the target."""
        device, colon, rest = name.partition(":")
        if colon:
            block = {"volume": self.volume, "hdd": self.hdd, "ssd": self.ssd}[device]
            self.session.write(f"/sys/block/{block}/{rest}", str(value))
        else:
            self.message(name, value)

    def expect_changed(self, *names: str) -> None:
        """Allow these knobs to differ when the stack is left; or `devices`, `metadata`, `kernel`.

        `kernel`: it may complain in its log.
        """
        self._may_differ.update(names)

    def knob_values(self) -> dict[str, str]:
        """Every watched knob that is there."""
        blocks = {"volume": self.volume, "hdd": self.hdd, "ssd": self.ssd}
        parted = {name: name.partition(":") for name in _QUEUES}
        paths = {n: f"/sys/block/{blocks[p[0]]}/{p[2]}" for n, p in parted.items()}
        texts = self.session.read_many(paths.values())
        found = {name: texts[path] for name, path in paths.items()}
        values = {name: knobs.selected(text) for name, text in found.items() if text is not None}
        table = self.session.run(["dmsetup", "table", self.name])
        if table.rc == 0 and table.stdout.split()[2] == self.target and self.works():
            values |= self.target_values(table.stdout)
        if self.lvm:
            values |= dm_parts.lvm_values(self.session, self.lvm_name)
        return values

    @abstractmethod
    def target_values(self, table: str) -> dict[str, str]:
        """The target's own knobs."""

    def changed_knobs(self) -> dict[str, tuple[str, str | None]]:
        """Watched knobs that are not as on entering: (original, now)."""
        now, before = self.knob_values(), self.originals
        differ = [name for name in before if now.get(name) != before[name]]
        return {name: (before[name], now.get(name)) for name in differ}

    def findings(self) -> list[str]:
        """Everything that would make leaving now fail, the metadata excepted."""
        found = [
            f"knob {name}: {before} -> {now}"
            for name, (before, now) in self.changed_knobs().items()
            if name not in self._may_differ
        ]
        names = dm_parts.names_above(self.session, self.hdd, self.ssd)
        if "devices" not in self._may_differ and (new := names - self._made.names):
            found.append(f"left over: {', '.join(sorted(new))}")
        if "kernel" in self._may_differ:
            return found
        messages = self.session.kernel_log(self._next_message)
        return found + [f"kernel: {record.text}" for record in trouble(messages)]

    @abstractmethod
    def _join(self) -> None:
        """Make the volume."""

    def _metadata_findings(self) -> list[str]:
        """What a check of the metadata says, once nobody uses it."""
        return []

    def _configure(self) -> None:
        self.set_knob("hdd:queue/scheduler", self._scheduler)
        for name, value in self._settings.items():
            self.set_knob(name, value)

    def _tear_down(self) -> None:
        dm_parts.remove(self.session, self.hdd, self.ssd)
        dm_parts.forget(self.session, self.vg, self.hdd, self.ssd)
