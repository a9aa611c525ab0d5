# SPDX-License-Identifier: GPL-2.0-only
"""Harness for tests of lvm-scripts: a volume with checksummed files in a clean guest.

I/O: LVM, bcache and file systems in a guest.
"""

from __future__ import annotations

import json
from typing import Any

from tests.lab.devices import control_path
from tests.lab.guest import CHECKOUT
from tests.lab.hdd_control import HddControl
from tests.lab.session import Completed, Process, Session
from tests.lab.wait import wait_until

SCRIPTS = CHECKOUT / "lvm-scripts"
MOUNT = "/run/lab/mnt"
VG = "vg"
VOLUME = f"{VG}/data"
DM = "vg-data"

# There is no udev in the guest: LVM makes the nodes itself, without waiting.
_ENVIRONMENT = {"DM_DISABLE_UDEV": "1", "HOME": "/run/lab"}
_LVM_CONFIG = """
activation { udev_sync=0 udev_rules=0 monitoring=0 }
global { use_lvmpolld=0 }
devices { filter=[ "a|^/dev/vd|", "r|.*|" ] }
"""
_LVM_LOCAL = "/etc/lvm/lvmlocal.conf"
_MODULES = "modprobe -a dm-cache dm-cache-smq dm-writecache bcache"
# Whatever a failed test left, from the top of the stack downwards.
_CLEAR = f"""
umount {MOUNT} 2>/dev/null
vgremove --force --force --yes {VG} 2>/dev/null
dmsetup remove_all
for knob in /sys/fs/bcache/*-*/stop /sys/block/*/bcache/stop; do
    [ -e "$knob" ] && echo 1 > "$knob"
done
true
"""
_LEFT = (
    "ls -d /sys/block/*/bcache /sys/fs/bcache/*-* 2>/dev/null; "
    "dmsetup ls | grep -v '^No devices'; grep -E '/dev/(sd|vd|mapper|bcache)' /proc/mounts; true"
)


class ScriptHarness:
    """A guest with the default devices, in which the scripts are run for real."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.hdd, self.ssd, self.other_ssd = (
            f"/dev/{session.device(name)}" for name in ("hdd0", "ssd0", "ssd1")
        )
        self._hdd_control = HddControl(control_path(session.folder, "hdd0"))

    def prepare(self) -> None:
        """Load modules and write the settings that every test needs."""
        self.session.put_file(_LVM_LOCAL, _LVM_CONFIG)
        self.shell(f"{_MODULES}; mkdir -p {MOUNT}")

    def clear(self) -> None:
        """Remove all stacks; fails if something remains."""
        self.hdd_scale(1)
        self.shell(_CLEAR, check=False)
        wait_until(lambda: not self.leftovers(), 30, "the stacks to be gone")
        for device in (self.hdd, self.ssd, self.other_ssd):
            self.shell(f"wipefs --all --force {device}; rm -f {_LVM_LOCAL}")
        self._hdd_control.close()

    def leftovers(self) -> str:
        """Return present stacks and mounts, one a line; empty if none."""
        return self.shell(_LEFT).strip()

    def hdd_scale(self, factor: float) -> None:
        """Make the hard disk slower by this factor: a drain then takes long enough to be hit."""
        self._hdd_control.scale = factor

    def shell(self, line: str, *, check: bool = True, timeout_s: float = 120) -> str:
        """A line of shell in the guest; its output."""
        done = self.session.run(line, timeout_s=timeout_s, env=_ENVIRONMENT)
        return (done.check() if check else done).stdout

    def run(self, script: str, *words: str) -> Completed:
        """Run a script to its end."""
        return self.session.run([SCRIPTS / script, *words], timeout_s=180, env=_ENVIRONMENT)

    def ok(self, script: str, *words: str) -> Completed:
        """Run a script that must succeed."""
        return self.run(script, *words).check()

    def start(self, script: str, *words: str) -> Process:
        """Start a script that will be interrupted."""
        # The guest's agent ignores SIGINT, and a shell cannot trap an ignored signal.
        argv = ["env", "--default-signal=INT", str(SCRIPTS / script), *words]
        return self.session.spawn(argv, env=_ENVIRONMENT)

    def interrupt(self, process: Process, once: str, number: int) -> Completed:
        """Send a signal to a script and its children once it printed `once`; wait for its end."""
        wait_until(lambda: once in process.stderr(), 60, f"{once!r} from {process.argv[0]}")
        process.kill(number)
        return process.wait(120)

    def pasted(self, line: str) -> Completed:
        """Run a command line that a script printed for the administrator."""
        return self.session.run(line, timeout_s=180, env=_ENVIRONMENT).check()

    def make_volume(self, mib: int = 512) -> None:
        """A plain volume of LVM on the hard disk."""
        self.shell(f"pvcreate -q {self.hdd}; vgcreate -q -s 1m {VG} {self.hdd}")
        self.shell(f"lvcreate -q -y -n data -L {mib}m {VG} {self.hdd}")

    def make_files(self, device: str) -> None:
        """A file system with a file in it."""
        self.shell(f"mkfs.ext4 -q -E lazy_itable_init=0 {device}; mount {device} {MOUNT}")
        self.shell("rm -f /run/lab/sums")
        self.add_file("first")

    def add_file(self, name: str, mib: int = 4) -> None:
        """A file of noise, on the device when this returns; its sum is kept elsewhere."""
        path = f"{MOUNT}/{name}"
        self.shell(
            f"dd if=/dev/urandom of={path} bs=1M count={mib} oflag=direct status=none; sync;"
            f"sha256sum {path} >> /run/lab/sums"
        )

    def check_files(self, device: str) -> None:
        """Check that every file, read from `device`, and the file system are intact."""
        self.shell(f"umount {MOUNT}; echo 3 > /proc/sys/vm/drop_caches; e2fsck -fn {device}")
        self.shell(f"mount {device} {MOUNT}; sha256sum --quiet -c /run/lab/sums")
        self.shell(f"umount {MOUNT}; rm /run/lab/sums")

    def hold_dirty(self) -> None:
        """Keep dm-cache from writing back until its table is reloaded."""
        self.shell(f"dmsetup message {DM} 0 migration_threshold 0")

    def status(self) -> dict[str, Any]:
        """Return the only stack, as stack-status prints it."""
        (stack,) = json.loads(self.ok("stack-status", "--json").stdout)["stacks"]
        found: dict[str, Any] = stack
        return found


def undo_of(done: Completed) -> str:
    """The command that a script printed to undo what it did."""
    (line,) = (text for text in done.stdout.splitlines() if text.startswith("# to undo: "))
    return line.removeprefix("# to undo: ")


def again_of(done: Completed) -> str:
    """The command that an interrupted script printed to try again."""
    lines = done.stderr.splitlines()
    return lines[lines.index(next(text for text in lines if "to try again" in text)) + 1].strip()
