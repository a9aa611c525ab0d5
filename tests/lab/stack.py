# SPDX-License-Identifier: GPL-2.0-only
"""A cached volume in a guest, as a context manager that compares every knob on leaving.

I/O: through a Session: sysfs of the guest.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Self

from tests.lab import knobs
from tests.lab.errors import UncleanStack
from tests.lab.session import LogRecord, Session
from tests.lab.wait import wait_until

_TROUBLE = re.compile(
    r"WARNING:|BUG|Oops|general protection|blocked for more than|I/O error|Call Trace|corrupt"
)
# syslog's "error" and worse.
_ERROR_LEVEL = 3


class Stack(ABC):
    """One slow and one fast device, joined to a volume.

    Entering makes the volume, applies `settings` and notes every knob. Leaving compares: a knob
    that differs without being named by `expect_changed`, a warning of the kernel, or what the
    kind of volume adds raises UncleanStack; either way the volume is taken down without writing
    back, so that the next can be made in the same guest.
    """

    def __init__(
        self,
        session: Session,
        *,
        hdd: str = "hdd0",
        ssd: str = "ssd0",
        scheduler: str = "mq-deadline",
        settings: Mapping[str, str | int] | None = None,
    ) -> None:
        """Describe a stack of two devices of the lab.

        scheduler: of the backing device: mq-deadline (what Debian gives a SATA disk), none, bfq;
        empty: it stays as it is.
        settings: an administrator's knobs, set before the originals are noted.
        """
        self.session = session
        self._disks = hdd, ssd
        self._find_disks()
        self._scheduler = scheduler
        self._settings = dict(settings or {})
        self._may_differ: set[str] = set()
        self.volume = ""
        """Kernel name, e.g. bcache0 or dm-0."""
        self.device = ""
        """Path of the volume in the guest."""
        self.originals: dict[str, str] = {}
        """Every watched knob as it was on entering."""

    def __enter__(self) -> Self:
        self._load_modules()
        if self._scheduler == "bfq":
            self.session.check(["modprobe", "bfq"])
        self._skip_messages()
        try:
            # An interrupted run may have left a volume on these devices.
            self._tear_down()
            self._make()
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
        findings = self.findings() + self._metadata_findings()
        self._tear_down()
        UncleanStack.raise_if(findings, error)

    def reassemble(self) -> None:
        """Bring the volume up after a reboot of the guest, as udev would; the originals stay."""
        self._find_disks()
        self._load_modules()
        self._skip_messages()
        self._assemble()
        self._configure()

    def knob_path(self, name: str) -> str:
        """Path of a knob of a block device, e.g. `hdd:queue/scheduler`."""
        device, _, rest = name.partition(":")
        block = {"volume": self.volume, "hdd": self.hdd, "ssd": self.ssd}[device]
        return f"/sys/block/{block}/{rest}"

    def knob(self, name: str) -> str:
        """A knob's value; of a list of choices, the chosen one."""
        return knobs.selected(self.session.read(self.knob_path(name)))

    def set_knob(self, name: str, value: str | int) -> None:
        """Write a knob; does not declare it as changed."""
        self.session.write(self.knob_path(name), str(value))

    def expect_changed(self, *names: str) -> None:
        """Allow these knobs to differ when the stack is left.

        `kernel`: it may report errors; `devices`, `metadata`: see DmStack.
        """
        self._may_differ.update(names)

    @abstractmethod
    def knob_values(self) -> dict[str, str]:
        """Every watched knob that exists."""

    def changed_knobs(self) -> dict[str, tuple[str, str | None]]:
        """Watched knobs that are not as on entering: (original, now)."""
        now, before = self.knob_values(), self.originals
        differ = [name for name in before if now.get(name) != before[name]]
        if knobs.SCHEDULER in differ:
            # Another scheduler has tunables of its own.
            differ = [name for name in differ if not name.startswith(knobs.TUNABLES)]
        return {name: (before[name], now.get(name)) for name in differ}

    def dev_t(self, which: str) -> str:
        """MAJ:MIN of volume, hdd or ssd."""
        return self.session.read(self.knob_path(f"{which}:dev"))

    @abstractmethod
    def dirty_bytes(self) -> int:
        """Data in the cache that is newer than that of the backing device."""

    @abstractmethod
    def is_clean(self) -> bool:
        """Whether nothing is dirty."""

    @abstractmethod
    def drain(self, timeout_s: float = 300) -> None:
        """Have the kernel write everything back at full speed; restores the knobs it needs."""

    def wait_clean(self, timeout_s: float) -> None:
        """Wait until nothing is dirty; does nothing to bring it about."""
        wait_until(self.is_clean, timeout_s, f"{self.device} to be clean")

    def findings(self) -> list[str]:
        """Everything that would make leaving now fail, the metadata excepted."""
        found = [
            f"knob {name}: {before} -> {now}"
            for name, (before, now) in self.changed_knobs().items()
            if name not in self._may_differ
        ]
        found += self._volume_findings()
        if "kernel" not in self._may_differ:
            messages = self.session.kernel_log(self._next_message)
            found += [f"kernel: {record.text}" for record in trouble(messages)]
        return found

    def _read_knobs(self, names: Collection[str]) -> dict[str, str]:
        """The knobs with a path of their own, without those that this kernel does not have."""
        values = self.session.read_many(self.knob_path(name) for name in names)
        found = {name: values[self.knob_path(name)] for name in names}
        return {name: knobs.selected(text) for name, text in found.items() if text is not None}

    def _read_tunables(self) -> dict[str, str]:
        """Those of the scheduler that the backing device has, if it has one."""
        folder = self.knob_path(knobs.TUNABLES)
        names = self.session.run(["ls", folder]).stdout.split()
        return self._read_knobs([f"{knobs.TUNABLES}{name}" for name in names])

    def _find_disks(self) -> None:
        self.hdd, self.ssd = map(self.session.device, self._disks)

    def _skip_messages(self) -> None:
        self._next_message = max((r.number for r in self.session.kernel_log()), default=-1) + 1

    def _configure(self) -> None:
        if self._scheduler:
            self.set_knob("hdd:queue/scheduler", self._scheduler)
        for name, value in self._settings.items():
            self.set_knob(name, value)

    @abstractmethod
    def _volume_findings(self) -> list[str]:
        """What is wrong with the volume itself."""

    def _metadata_findings(self) -> list[str]:
        """What a check of the metadata reports; may take the volume down for it."""
        return []

    @abstractmethod
    def _load_modules(self) -> None:
        """Load what the volume needs of the kernel."""

    @abstractmethod
    def _make(self) -> None:
        """Make the volume; sets `volume` and `device`."""

    @abstractmethod
    def _assemble(self) -> None:
        """Bring a volume up that has been made before."""

    @abstractmethod
    def _tear_down(self) -> None:
        """Remove whatever uses the two devices, without writing anything back."""


def trouble(records: Iterable[LogRecord]) -> list[LogRecord]:
    """The kernel's messages that must not appear in a clean run."""
    return [r for r in records if r.level <= _ERROR_LEVEL or _TROUBLE.search(r.text)]
