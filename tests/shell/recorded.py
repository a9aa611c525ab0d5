# SPDX-License-Identifier: GPL-2.0-only
"""A machine of files for the scripts: fake tools with state in a PATH, and a /sys.

The lab tests the scripts on a real kernel (test_lvm_scripts.py, test_bcache_scripts.py).
I/O: a temporary folder; runs the scripts.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
GIB = 1 << 30
FAKES = Path(__file__).resolve().parent

TOOLS = (
    *("lvs", "pvs", "lvmconfig", "dmsetup", "blockdev", "stat", "blkid", "bcache-super-show"),
    *("wipefs", "lvchange", "lvconvert", "lvcreate", "lvremove", "vgextend", "vgreduce"),
    *("pvcreate", "pvremove", "make-bcache", "modprobe", "cache_check", "dd", "sleep", "kernel"),
)
UUID = "0e7a3c58-6c86-4b1d-9d7c-3f6f0a5b2c11"
_NUMBERS = {"sda": "8:0", "sdb": "8:16", "sdc": "8:32", "bcache0": "252:0"}

# Sourced by each script: passes a write to a file of /sys to the fake kernel.
_BASH_ENV = r"""
case $0 in *lvm-scripts/*) builtin echo "$$" >"$EBBGATE_MACHINE/pid" ;; esac
to_kernel() {
    local out=/proc/$BASHPID/fd/1 file
    [[ -f $out ]] || return 0
    file=$(readlink "$out")
    [[ $file != "$EBBGATE_SYS"/* ]] || "$EBBGATE_MACHINE/bin/kernel" "$file" "$1" 2>/dev/null >&2
}
printf() { builtin printf "$@" && to_kernel "${!#}"; }
echo() { builtin echo "$@" && to_kernel "${!#}"; }
"""


@dataclass
class Machine:
    """One VG `vg` with the volume `data` on /dev/sda; /dev/sdb is a blank SSD."""

    root: Path
    lvs: str = "data|linear|active||4194304|0|||||/dev/sda(0)\n"
    pvs: str = ""
    """MAJOR|MINOR|VG|EXTENT_BYTES|EXTENTS|ALLOCATED for each physical volume that matters."""
    ssd_bytes: int = 100 * GIB
    lv_bytes: int = 400 << 20
    """Size of each volume but the metadata of a pool, which has 8 MiB."""
    signatures: Mapping[str, str] = field(default_factory=dict)
    """OFFSET,TYPE lines by kernel name of the device."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Mount points by device number."""
    swaps: str = ""
    dm_status: str = ""
    dm_table: str = ""
    blkid: str = "4096\n"
    superblocks: Mapping[str, str] = field(default_factory=dict)
    """Output of bcache-super-show by kernel name of the device."""
    sysfs: Mapping[str, str] = field(default_factory=dict)
    """Files of /sys with their text; `-> NAME` is a link, `-> /NAME` a link within this /sys."""
    without: str = ""
    """A program that is not installed."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """How programs fail: `fails`, `old`, `garbage`, or `locked`: lvs, when it needs a lock."""
    fault: str = ""
    """`STEP KIND`: the fault of one step; see `act` in fake_tool."""
    installed: bool = False

    def run(self, *argv: str) -> str:
        """Run a script; return its stdout, stderr and exit code in one text."""
        done = self.start(*argv)
        if "-n" in argv or "--dry-run" in argv:
            assert self.steps() == [], "a dry run changed something"
        command = shlex.join([f"lvm-scripts/{argv[0]}", *argv[1:]])
        text = f"$ {command}\n{done.stdout}{done.stderr}exit {done.returncode}\n"
        return text.replace(str(self.sys), "/sys")

    def start(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a script on this machine as it is now."""
        self.install()
        command = [str(REPO / "lvm-scripts" / argv[0]), *argv[1:]]
        # With its relative path, which the printed undo commands have, too.
        command[0] = f"lvm-scripts/{argv[0]}"
        return subprocess.run(
            command,
            cwd=REPO,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )

    @property
    def sys(self) -> Path:
        """Return its /sys."""
        return self.root / "sys"

    def environment(self) -> dict[str, str]:
        """Return the environment of the scripts."""
        return {
            "PATH": f"{self.root}/bin:{self._programs()}",
            "HOME": str(self.root / "home"),
            "BASH_ENV": str(self.root / "bash_env"),
            "EBBGATE_MACHINE": str(self.root),
            "EBBGATE_FAKES": str(FAKES),
            "EBBGATE_SYS": str(self.sys),
            "EBBGATE_PROC": str(self.root / "proc"),
            "EBBGATE_LVM_LOCKS": str(self.root),
            "EBBGATE_LVM_LOCK_SECONDS": "1",
            "EBBGATE_PATIENCE_SECONDS": "1",
        }

    def steps(self) -> list[str]:
        """Return the commands that changed something, in order; writes to /sys as `echo`."""
        log = self.root / "log"
        text = log.read_text().replace(str(self.sys), "/sys") if log.exists() else ""
        return text.splitlines()

    def state(self) -> dict[str, str]:
        """Return what a roll back must restore: signatures, volumes, knobs, but not dirty data."""
        kept: dict[str, str] = {}
        for path in sorted([*(self.root / "state").rglob("*"), *self.sys.rglob("*")]):
            name = str(path.relative_to(self.root))
            if path.is_symlink():
                kept[name] = f"-> {path.readlink()}"
            elif path.is_file() and not re.search(
                r"/kept-|dm_status|dm_table|kernel/debug|dirty_data|/superblock", name
            ):
                text = "".join(sorted(path.read_text().splitlines(keepends=True)))
                if text or not name.startswith("state/"):
                    kept[name] = text.replace("dirty", "clean")
        return kept

    def install(self) -> None:
        """Write all files, once."""
        if self.installed:
            return
        self.installed = True
        for name in TOOLS:
            if name != self.without:
                link = self.root / "bin" / name
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(FAKES / "fake_tool")
        for folder in ("home", "state", "sys/class", "sys/block"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        self.file("bash_env", _BASH_ENV)
        for name in ("lvs", "pvs", "dm_status", "dm_table", "blkid"):
            self.file(f"state/{name}", getattr(self, name))
        self.file("state/ssd_bytes", f"{self.ssd_bytes}\n")
        self.file("state/lv_bytes", f"{self.lv_bytes}\n")
        for name, text in self.signatures.items():
            self.file(f"state/signatures.{name}", text)
        for name, text in self.superblocks.items():
            self.file(f"state/superblock.{name}", text)
        for name, text in self.faults.items():
            self.file(f"fault.{name}", text)
        if self.fault:
            self.file("fault", f"{self.fault}\n")
        self._install_proc()
        self._install_sysfs()

    def _install_proc(self) -> None:
        self.file("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable:   16777216 kB\n")
        self.file("proc/sys/kernel/random/uuid", f"{UUID}\n")
        self.file("proc/swaps", f"Filename Type Size Used Priority\n{self.swaps}")
        mounts = "".join(
            f"30 1 {number} / {point} rw - ext4 /dev/root rw\n"
            for number, point in self.mounts.items()
        )
        self.file("proc/self/mountinfo", f"20 1 0:20 / /proc rw - proc proc rw\n{mounts}")

    def _install_sysfs(self) -> None:
        (self.sys / "class/block").symlink_to(self.sys / "block")
        self.file("sys/fs/bcache/register", "")
        for name, number in _NUMBERS.items():
            link = self.sys / "dev/block" / number
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self.sys / "block" / name)
            if name != "bcache0":
                self.file(f"sys/block/{name}/queue/discard_granularity", "512\n")
                self.file(f"sys/block/{name}/dev", f"{number}\n")
        for path, text in self.sysfs.items():
            if text.startswith("-> "):
                target = text.removeprefix("-> ")
                link = self.sys / path
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(f"{self.sys}{target}" if target.startswith("/") else target)
            else:
                kept = self.file(f"sys/{path}", text)
                self.file(f"state/kept{str(kept).replace('/', '-')}", text)

    def _programs(self) -> str:
        """Return the folders of the real programs."""
        places = os.environ["PATH"].split(os.pathsep)
        if self.without:
            places = [each for each in places if not (Path(each) / self.without).exists()]
        return os.pathsep.join(places)

    def file(self, name: str, text: str) -> Path:
        """Write a file of this machine and return its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def refused(machine: Machine, argv: tuple[str, ...], text: str, code: int = 64) -> None:
    """Expect that a script, also in a dry run, ends with this text before its first step."""
    for words in (argv, (argv[0], "-n", *argv[1:])):
        answer = machine.run(*words)
        assert text in answer
        assert answer.endswith(f"exit {code}\n"), answer
        assert machine.steps() == []
