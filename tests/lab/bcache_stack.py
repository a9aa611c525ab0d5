# SPDX-License-Identifier: GPL-2.0-only
"""A bcache volume in a guest.

I/O: through a Session: make-bcache, sysfs of the guest.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Mapping
from pathlib import Path

from tests.lab import knobs
from tests.lab.session import Session
from tests.lab.stack import Stack
from tests.lab.wait import wait_until

_SMALL_SSD_BYTES = 1 << 30

# A key reads `1:1208 len 128 -> [0:136 gen 0] dirty`, in sectors.
_SUM_DIRTY = """
/ dirty/ { for (i = 1; i < NF; i++) if ($i == "len") sectors += $(i + 1) }
END { printf "%d", sectors * 512 }"""


class BcacheStack(Stack):
    """A bcache volume; a bad `state` on leaving is a finding, too. Knobs: names as in knobs.py."""

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
        super().__init__(session, hdd=hdd, ssd=ssd, scheduler=scheduler, settings=settings)
        self._cache_mode = cache_mode
        self.set_uuid = ""

    @property
    def sysfs(self) -> str:
        """Folder of the volume's knobs."""
        return f"/sys/block/{self.volume}/bcache"

    def knob_path(self, name: str) -> str:
        """Path of a knob by its name in knobs.py."""
        return super().knob_path(name) if ":" in name else f"{self.sysfs}/{name}"

    def knob_values(self) -> dict[str, str]:
        return self._read_knobs(knobs.WATCHED) | self._read_tunables()

    def state(self) -> str:
        """no cache, clean, dirty or inconsistent; gone if the volume does not exist any more."""
        try:
            return self.session.read(f"{self.sysfs}/state")
        except OSError:
            return "gone"

    def is_clean(self) -> bool:
        return self.state() == "clean"

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

    def drain(self, timeout_s: float = 300) -> None:
        drains = {"writeback_percent": 0, "writeback_delay": 0, "writeback_running": 1}
        before = {name: self.knob(name) for name in drains}
        try:
            for name, drain_value in drains.items():
                self.set_knob(name, drain_value)
            self.wait_clean(timeout_s)
        finally:
            for name, value in before.items():
                self.set_knob(name, value)

    def _volume_findings(self) -> list[str]:
        state = self.state()
        return [] if state in ("clean", "dirty") else [f"{self.volume} is in state {state!r}"]

    def _load_modules(self) -> None:
        if self.session.resolve("/sys/fs/bcache") is None:
            self.session.check(["modprobe", "bcache"])

    def _make(self) -> None:
        mode = ["--writeback"] if self._cache_mode == "writeback" else []
        backing, cache = f"/dev/{self.hdd}", f"/dev/{self.ssd}"
        options = ["--bucket", self._bucket(), "--wipe-bcache", *mode]
        self.session.check(["make-bcache", "-B", backing, "-C", cache, *options])
        self._assemble()

    def _bucket(self) -> str:
        ssd_bytes = int(self.session.read(f"/sys/block/{self.ssd}/size")) * 512
        return "128k" if ssd_bytes < _SMALL_SSD_BYTES else "512k"

    def replace_cache(self, ssd: str) -> None:
        """Have the volume use another cache device of the lab, as its administrator would."""
        old = f"/sys/block/{self.ssd}/bcache"
        self.session.write(f"{self.sysfs}/detach", "1")
        # Detached once all is written back; a set that is stopped sooner takes the volume with it.
        cache = f"{self.sysfs}/cache"
        wait_until(lambda: self.session.resolve(cache) is None, 60, "the cache to be detached")
        self.session.write(f"{old}/set/unregister", "1")
        wait_until(lambda: self.session.resolve(old) is None, 60, "the old cache to be free")
        self._disks = self._disks[0], ssd
        self._find_disks()
        self.session.check(
            ["make-bcache", "-C", f"/dev/{self.ssd}", "--bucket", self._bucket(), "--wipe-bcache"]
        )
        self._register(f"/dev/{self.ssd}")
        self.set_uuid = self._link(f"/sys/block/{self.ssd}/bcache/set")
        self.session.write(f"{self.sysfs}/attach", self.set_uuid)
        self._link(cache)

    def disassemble(self) -> None:
        """Stop the volume and its cache set; what they hold stays for `reassemble`.

        The number of the volume is free afterwards: the next that is registered gets it.
        """
        self._stop()
        # The kernel's own part of the volume goes before its device.
        wait_until(
            lambda: self.session.resolve(f"/sys/block/{self.volume}") is None,
            60,
            f"{self.volume} to be gone",
        )

    def _assemble(self) -> None:
        for disk in (self.ssd, self.hdd):
            self._register(f"/dev/{disk}")
        self.volume = self._link(f"/sys/block/{self.hdd}/bcache/dev")
        self.device = f"/dev/{self.volume}"
        self.set_uuid = self._link(f"{self.sysfs}/cache")
        self.session.wait_for_path(self.device)

    def _link(self, path: str) -> str:
        """Last part of where a link leads, as soon as it exists."""
        real = wait_until(lambda: self.session.resolve(path), 20, f"{path} in the guest")
        return real.rpartition("/")[2]

    def _register(self, device: str) -> None:
        """Register a device; for a moment it may still be busy with what was stopped just now."""

        def is_registered() -> bool:
            try:
                self.session.write("/sys/fs/bcache/register", device)
            except OSError as error:
                # udev may have registered it already, and kernels refuse a second time either way.
                if error.errno not in (errno.EINVAL, errno.EBUSY):
                    raise
            return self.session.resolve(f"/sys/block/{Path(device).name}/bcache") is not None

        wait_until(is_registered, 20, f"bcache to take {device}")

    def _configure(self) -> None:
        if self.knob("cache_mode") != self._cache_mode:
            self.set_knob("cache_mode", self._cache_mode)
        super()._configure()

    def _tear_down(self) -> None:
        """Stop the volume without writing anything back, and wipe both devices."""
        self._stop()
        for device in (self.hdd, self.ssd):
            # All signatures that would make the next tool ask for confirmation are there.
            self.session.write(f"/dev/{device}", "\0" * 65536)

    def _stop(self) -> None:
        """Stop only what uses these two devices: another stack may be up beside this one."""
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
