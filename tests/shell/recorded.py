# SPDX-License-Identifier: GPL-2.0-only
"""A machine as the scripts see it: recorded answers of tools, in a PATH and a /sys of files.

For the text of dry runs only; what the scripts do is proved in the lab (test_lvm_scripts.py).
I/O: a temporary folder; runs the scripts.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
GIB = 1 << 30

# Commands that change something: a dry run that starts one of them fails its test.
CHANGING = (
    *("lvchange", "lvconvert", "lvcreate", "lvremove", "vgextend", "vgreduce", "pvcreate"),
    *("pvremove", "make-bcache", "modprobe", "cache_check"),
)

UUID = "0e7a3c58-6c86-4b1d-9d7c-3f6f0a5b2c11"


@dataclass
class Machine:
    """One VG `vg` with the volume `data` on /dev/sda; /dev/sdb is a blank SSD."""

    root: Path
    lvs: str = "data|linear|active||4194304|0|||||/dev/sda(0)\n"
    pvs: str = ""
    ssd_bytes: int = 100 * GIB
    signatures: str = ""
    mounts: str = ""
    dm_status: str = ""
    dm_table: str = ""
    blkid: str = "4096\n"
    superblock: str = ""
    sysfs: dict[str, str] = field(default_factory=dict)
    """Files of /sys with their text; `-> NAME` is a link."""
    without: str = ""
    """A program that is not installed."""

    def run(self, *argv: str) -> str:
        """What a script prints, both channels, and its exit code, in one text."""
        self._install()
        sys, proc = self.root / "sys", self.root / "proc"
        env = {
            "PATH": f"{self.root}/bin:{self._programs()}",
            "EBBGATE_SYS": str(sys),
            "EBBGATE_PROC": str(proc),
            "EBBGATE_LVM_LOCKS": str(self.root),
            "EBBGATE_LVM_LOCK_SECONDS": "1",
        }
        command = [f"lvm-scripts/{argv[0]}", *argv[1:]]
        done = subprocess.run(
            command, cwd=REPO, env=env, capture_output=True, text=True, check=False, timeout=30
        )
        assert not (self.root / "changed").exists(), (self.root / "changed").read_text()
        text = f"$ {shlex.join(command)}\n{done.stdout}{done.stderr}exit {done.returncode}\n"
        return text.replace(str(sys), "/sys")

    def _install(self) -> None:
        self._tool("lvs", _say(self.lvs))
        self._tool("pvs", _say(self.pvs))
        self._tool("lvmconfig", "exit 5")
        self._tool("lsblk", _say(self.mounts))
        self._tool("blkid", _say(self.blkid))
        self._tool("wipefs", f'[ "$1" = --no-act ] || exit 99\n{_say(self.signatures)}')
        self._tool("bcache-super-show", _say(self.superblock))
        sizes = f"--getsize64) echo {self.ssd_bytes} ;; --getro) echo 0 ;; --getss) echo 512"
        self._tool("blockdev", f'[ "$2" != /dev/nothing ] || exit 1\ncase $1 in {sizes} ;; esac')
        self._tool("dmsetup", self._dmsetup())
        for name in CHANGING:
            self._tool(name, f"echo {name} >> {self.root}/changed; exit 99")
        self.file("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable:   16777216 kB\n")
        self.file("proc/sys/kernel/random/uuid", f"{UUID}\n")
        for name in ("sda", "sdb"):
            self.file(f"sys/class/block/{name}/queue/discard_granularity", "512\n")
        self.file("sys/fs/bcache/register", "")
        for path, text in self.sysfs.items():
            if text.startswith("-> "):
                link = self.root / "sys" / path
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(text.removeprefix("-> "))
            else:
                self.file(f"sys/{path}", text)

    def _programs(self) -> str:
        """The folders of this machine's own programs, which are not recorded."""
        places = os.environ["PATH"].split(os.pathsep)
        if self.without:
            (self.root / "bin" / self.without).unlink(missing_ok=True)
            places = [each for each in places if not (Path(each) / self.without).exists()]
        return os.pathsep.join(places)

    def _dmsetup(self) -> str:
        table = f'case "$*" in *target\\ writecache*) exit 0 ;; esac; {_say(self.dm_table)}'
        return (
            f"case $1 in status) {_say(self.dm_status)} ;; table) {table} ;; "
            "info) echo dm-0 ;; esac"
        )

    def _tool(self, name: str, body: str) -> None:
        path = self.file(f"bin/{name}", f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def file(self, name: str, text: str) -> Path:
        """A file of this machine."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def _say(text: str) -> str:
    return f"printf %s {shlex.quote(text)}"
