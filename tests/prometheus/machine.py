# SPDX-License-Identifier: GPL-2.0-only
"""The real daemon on a fake machine: python -m tests.prometheus.machine FOLDER

I/O: a /sys of files and a state folder below FOLDER. The probe is `tests.prometheus.player`, so the
load is that of real caches; the knobs are files. Until SIGTERM.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ebbgate.config import Config
from ebbgate.lock import DaemonLock
from ebbgate.machine import Daemon
from ebbgate.model.volume import Mode
from ebbgate.priority import Priority
from ebbgate.recorder import Recorder
from tests.builders import volume
from tests.fake_sysfs import NO_DM, WatchedSysfs, fake_bcache


def main() -> None:
    """The machine's one volume is bcache0, enforced."""
    folder = Path(sys.argv[1])
    state = folder / "state"
    state.mkdir()
    fake = fake_bcache(folder / "sys")
    fake.write(f"/sys/fs/bcache/{volume().set_uuid}/internal/trigger_gc", "")
    sysfs = WatchedSysfs(folder / "sys", NO_DM)
    probe = folder / "probe"
    probe.write_text(f"#!/bin/sh\nexec {sys.executable} -m tests.prometheus.player\n")
    probe.chmod(0o755)
    config = Config(state, probe, policy_dir=folder / "policies", mode=Mode.ENFORCE)
    recorder = Recorder(config.history_path)
    with DaemonLock(config.lock_path):
        asyncio.run(_run(config, sysfs, recorder))
        recorder.stop()


async def _run(config: Config, sysfs: WatchedSysfs, recorder: Recorder) -> None:
    daemon = Daemon(config, sysfs, recorder, "this boot")
    # Nobody's requests wait here, and other programs of this machine have more urgent things to do.
    daemon.priority = Priority()
    await daemon.run()


if __name__ == "__main__":
    main()
