# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate on a machine of files: python -m tests.fake_machine.machine FOLDER [daemon] WORD...

I/O: the /sys is FOLDER/sys, the state FOLDER/state; `daemon` is ebbgated with all that its own
command line does, until SIGTERM, WORD... are more options of it; else they are those of ebbgate.
The one volume is bcache0, enforced; its probe plays recordings of real ones (player.py). The knobs
are files.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ebbgate import cli
from ebbgate.cli.context import Context
from ebbgate.daemon import main as daemon
from ebbgate.kernel.sysfs import Sysfs
from tests.builders import volume
from tests.fake_sysfs import NO_DM, WatchedSysfs, fake_bcache


def make(folder: Path, played: Sequence[str] = (), *, idle: bool = False) -> None:
    """The machine, as it is before ebbgate. `played`: recordings, the player's own choice without
    one; `idle`: nobody uses the volume, and nothing is dirty.
    """
    fake = fake_bcache(folder / "sys")
    fake.write(f"/sys/fs/bcache/{volume().set_uuid}/internal/trigger_gc", "")
    # As numbers: a file shows what was written to it, where the kernel shows 4.0M and 4.0k again.
    fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "4194304")
    fake.write("/sys/block/bcache0/bcache/writeback_rate", "4096")
    if idle:
        fake.write("/sys/block/bcache0/bcache/dirty_data", "0.0k")
        fake.write("/sys/block/bcache0/bcache/state", "clean")
    words = ["--played", *played] if played else []
    probe_of(folder, *words, *(["--idle"] if idle else []))


def probe_of(folder: Path, *words: str) -> Path:
    """The machine's probe, a program; `words`: of the player."""
    path = folder / "probe"
    command = shlex.join([sys.executable, "-m", "tests.fake_machine.fake_probe", *words])
    path.write_text(f"#!/bin/sh\nexec {command}\n")
    path.chmod(0o755)
    return path


def argv(folder: Path, *words: str) -> list[str | Path]:
    """A process of this machine; its PYTHONPATH has the controller and the repository."""
    return [sys.executable, "-m", "tests.fake_machine.machine", folder, *words]


def knobs(folder: Path) -> dict[str, str]:
    """Each file of the machine's /sys and what it holds."""
    found = {}
    for file in (folder / "sys").rglob("*"):
        # A daemon that runs writes a new file beside the old one and gives it the old one's name.
        if not file.name.startswith("."):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                found[str(file.relative_to(folder))] = file.read_text()
    return found


def main() -> int:
    """The exit code of ebbgated or ebbgate."""
    folder = Path(sys.argv[1])
    sysfs: Sysfs = WatchedSysfs(folder / "sys", NO_DM)
    folders = ["--state-dir", folder / "state", "--runtime-dir", folder / "run"]
    if sys.argv[2] == "daemon":
        words = [*folders, "--probe", folder / "probe", "--mode", "enforce"]
        words += ["--policy-dir", folder / "policies", *sys.argv[3:]]
        return daemon.main([str(word) for word in words], sysfs)
    return cli.main([*map(str, folders), *sys.argv[2:]], Context(sysfs))


if __name__ == "__main__":
    sys.exit(main())
