# SPDX-License-Identifier: GPL-2.0-only
"""A bcache volume in a guest, as a context manager that nobody can leave unclean unseen.

I/O: through a Session: make-bcache, sysfs of the guest.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterable, Mapping
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

_SMALL_SSD_BYTES = 1 << 30

# A key reads `1:1208 len 128 -> [0:136 gen 0] dirty`, in sectors.
_SUM_DIRTY = """
/ dirty/ { for (i = 1; i < NF; i++) if ($i == "len") sectors += $(i + 1) }
END { printf "%d", sectors * 512 }"""


class BcacheStack:
    """One backing device and one cache device, joined to a volume.

    Entering makes, registers and configures it and notes every knob. Leaving compares: a knob
    that differs without being named by `expect_changed`, a warning of the kernel, or a bad
    `state` raises UncleanStack; either way the volume is taken down, so that the next can be
    made in the same guest.
    """

    def __init__(
        self,
        session: Session,
        *,
        hdd: str = "hdd0",
        ssd: str = "ssd0",
        cache_mode: str = "writeback",
        scheduler: str = "mq-deadline",
        settings: Mapping[str, str | int] | None = None,
    ) -> None:
        """Describe a stack of two devices of the lab.

        scheduler: of the backing device: mq-deadline (what Debian gives a SATA disk), none, bfq.
        settings: knobs (names as in knobs.py) set before the originals are noted, i.e. those of
        an administrator, which are to be there again in the end.
        """
        self.session = session
        self.hdd = session.device(hdd)
        self.ssd = session.device(ssd)
        self._cache_mode = cache_mode
        self._scheduler = scheduler
        self._settings = dict(settings or {})
        self._may_differ: set[str] = set()
        self.volume = ""
        """Kernel name, e.g. bcache0."""
        self.set_uuid = ""
        self.originals: dict[str, str] = {}
        """Every watched knob as it was on entering."""

    def __enter__(self) -> Self:
        self._load_modules()
        self._next_message = max((r.number for r in self.session.kernel_log()), default=-1) + 1
        try:
            # Whatever a run that was broken off has left there.
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
        findings = self.findings()
        self._tear_down()
        UncleanStack.told(findings, error)

    @property
    def device(self) -> str:
        """Path of the volume in the guest."""
        return f"/dev/{self.volume}"

    @property
    def sysfs(self) -> str:
        """Folder of the volume's knobs."""
        return f"/sys/block/{self.volume}/bcache"

    def knob_path(self, name: str) -> str:
        """Path of a knob by its name in knobs.py."""
        device, colon, rest = name.partition(":")
        if colon:
            block = {"volume": self.volume, "hdd": self.hdd, "ssd": self.ssd}[device]
            return f"/sys/block/{block}/{rest}"
        return f"{self.sysfs}/{name}"

    def knob(self, name: str) -> str:
        """A knob's value; of a list of choices, the chosen one."""
        return knobs.selected(self.session.read(self.knob_path(name)))

    def set_knob(self, name: str, value: str | int) -> None:
        """Write a knob; does not declare it as changed."""
        self.session.write(self.knob_path(name), str(value))

    def expect_changed(self, *names: str) -> None:
        """Allow these knobs to differ when the stack is left."""
        self._may_differ.update(names)

    def knob_values(self) -> dict[str, str]:
        """Every watched knob that this kernel has."""
        values = self.session.read_many(self.knob_path(name) for name in knobs.WATCHED)
        found = {name: values[self.knob_path(name)] for name in knobs.WATCHED}
        return {name: knobs.selected(text) for name, text in found.items() if text is not None}

    def changed_knobs(self) -> dict[str, tuple[str, str | None]]:
        """Watched knobs that are not as on entering: (original, now)."""
        now = self.knob_values()
        before = self.originals
        differ = [name for name in before if now.get(name) != before[name]]
        return {name: (before[name], now.get(name)) for name in differ}

    def state(self) -> str:
        """no cache, clean, dirty or inconsistent; gone if there is no such volume any more."""
        try:
            return self.session.read(f"{self.sysfs}/state")
        except OSError:
            return "gone"

    def dirty_bytes(self) -> int:
        """Dirty data as sysfs has it: cut to a tenth of the printed unit (0.1 MiB below 1 GiB)."""
        return knobs.bytes_from_human(self.session.read(f"{self.sysfs}/dirty_data"))

    def dirty_bytes_exact(self) -> int:
        """Dirty data summed over the keys of the index, to the sector.

        From debugfs (drivers/md/bcache/debug.c), which walks the whole index: seconds where the
        pieces are small, and it competes with the foreground. Not for use during a measurement.
        """
        keys = f"/sys/kernel/debug/bcache/bcache-{self.set_uuid}"
        return int(self.session.check(["awk", _SUM_DIRTY, keys], timeout_s=120))

    def dev_t(self, which: str) -> str:
        """MAJ:MIN of volume, hdd or ssd."""
        return self.session.read(self.knob_path(f"{which}:dev"))

    def wait_clean(self, timeout_s: float) -> None:
        """Wait until nothing is dirty; does nothing to bring it about."""
        wait_until(lambda: self.state() == "clean", timeout_s, f"{self.volume} to be clean")

    def drain(self, timeout_s: float = 300) -> None:
        """Have the kernel write everything back at full speed; restores the knobs it needs."""
        drains = {"writeback_percent": 0, "writeback_delay": 0, "writeback_running": 1}
        before = {name: self.knob(name) for name in drains}
        try:
            for name, drain_value in drains.items():
                self.set_knob(name, drain_value)
            self.wait_clean(timeout_s)
        finally:
            for name, value in before.items():
                self.set_knob(name, value)

    def findings(self) -> list[str]:
        """Everything that would make leaving now fail."""
        found = [
            f"knob {name}: {before} -> {now}"
            for name, (before, now) in self.changed_knobs().items()
            if name not in self._may_differ
        ]
        if (state := self.state()) not in ("clean", "dirty"):
            found.append(f"{self.volume} is in state {state!r}")
        messages = self.session.kernel_log(self._next_message)
        found += [f"kernel: {record.text}" for record in trouble(messages)]
        return found

    def _load_modules(self) -> None:
        if self.session.resolve("/sys/fs/bcache") is None:
            self.session.check(["modprobe", "bcache"])
        if self._scheduler == "bfq":
            self.session.check(["modprobe", "bfq"])

    def _make(self) -> None:
        bucket = "128k" if self._ssd_bytes() < _SMALL_SSD_BYTES else "512k"
        mode = ["--writeback"] if self._cache_mode == "writeback" else []
        backing, cache = f"/dev/{self.hdd}", f"/dev/{self.ssd}"
        options = ["--bucket", bucket, "--wipe-bcache", *mode]
        self.session.check(["make-bcache", "-B", backing, "-C", cache, *options])
        for device in (cache, backing):
            self._register(device)
        self.volume = self._link(f"/sys/block/{self.hdd}/bcache/dev")
        self.set_uuid = self._link(f"{self.sysfs}/cache")
        self.session.wait_for_path(self.device)

    def _link(self, path: str) -> str:
        """Last part of where a link leads, as soon as it is there."""
        real = wait_until(lambda: self.session.resolve(path), 20, f"{path} in the guest")
        return real.rpartition("/")[2]

    def _register(self, device: str) -> None:
        try:
            self.session.write("/sys/fs/bcache/register", device)
        except OSError as error:
            # Where udev runs it has been faster, and a second registering is refused: no harm.
            if error.errno != errno.EINVAL:
                raise

    def _configure(self) -> None:
        self.set_knob("hdd:queue/scheduler", self._scheduler)
        if self.knob("cache_mode") != self._cache_mode:
            self.set_knob("cache_mode", self._cache_mode)
        for name, value in self._settings.items():
            self.set_knob(name, value)

    def _ssd_bytes(self) -> int:
        return int(self.session.read(f"/sys/block/{self.ssd}/size")) * 512

    def _tear_down(self) -> None:
        """Stop the volume without writing anything back, and forget both devices.

        Only what holds these two devices: another stack may be up beside this one.
        """
        folders = [f"/sys/block/{device}/bcache" for device in (self.ssd, self.hdd)]
        stops = [f"{folders[0]}/set/stop", f"{folders[1]}/stop"]
        for knob in stops:
            # The set takes the volume with it, so that the second may be gone already.
            with contextlib.suppress(OSError):
                self.session.write(knob, "1")
        wait_until(
            lambda: not any(map(self.session.resolve, folders)),
            60,
            f"{self.volume or 'a volume'} to let go of {self.hdd} and {self.ssd}",
        )
        for device in (self.hdd, self.ssd):
            # Where every signature is that would make the next tool ask back.
            self.session.write(f"/dev/{device}", "\0" * 65536)


def trouble(records: Iterable[LogRecord]) -> list[LogRecord]:
    """The kernel's messages that must not appear in a clean run."""
    return [r for r in records if r.level <= _ERROR_LEVEL or _TROUBLE.search(r.text)]
