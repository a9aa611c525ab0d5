# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate on a machine of files: python -m tests.bench.file_machine FOLDER daemon|WORD...

I/O: the /sys is FOLDER/sys, the state FOLDER/state; `daemon` is ebbgated with all that its own
command line does, another word is a command of ebbgate. The one volume is bcache0; its probe plays
a recording of a real one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ebbgate import cli, daemon
from ebbgate.cli.context import Context
from ebbgate.sysfs import Sysfs
from tests.builders import volume
from tests.fake_sysfs import NO_DM, WatchedSysfs, fake_bcache


def make(folder: Path, *, idle: bool = False) -> None:
    """The machine, as it is before ebbgate; `idle`: nobody uses it, and nothing is dirty."""
    fake = fake_bcache(folder / "sys")
    fake.write(f"/sys/fs/bcache/{volume().set_uuid}/internal/trigger_gc", "")
    probe = folder / "probe"
    player = "tests.prometheus.player --played lab-gap-drain"
    if idle:
        player += " --idle"
        fake.write("/sys/block/bcache0/bcache/dirty_data", "0.0k")
        fake.write("/sys/block/bcache0/bcache/state", "clean")
    probe.write_text(f"#!/bin/sh\nexec {sys.executable} -m {player}\n")
    probe.chmod(0o755)


def knobs(folder: Path) -> dict[str, str]:
    """Each file of the machine's /sys and what it holds."""
    files = (file for file in (folder / "sys").rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_text() for file in files}


def main() -> int:
    """The exit code of ebbgated or ebbgate."""
    folder = Path(sys.argv[1])
    sysfs: Sysfs = WatchedSysfs(folder / "sys", NO_DM)
    if sys.argv[2:] == ["daemon"]:
        words = ["--state-dir", folder / "state", "--probe", folder / "probe", "--mode", "enforce"]
        words += ["--policy-dir", folder / "policies"]
        return daemon.main([str(word) for word in words], sysfs)
    return cli.main(["--state-dir", str(folder / "state"), *sys.argv[2:]], Context(sysfs))


if __name__ == "__main__":
    sys.exit(main())
