# SPDX-License-Identifier: GPL-2.0-only
"""The real daemon on many volumes: python -m tests.bench.web_machine FOLDER

I/O: a /sys of files below FOLDER, FOLDER/state, FOLDER/ticks with the time (CLOCK_MONOTONIC, ns)
at which each tick began. The volumes are those of FOLDER/state/history.db that bcache could have;
of the mapped ones nobody tells any more. The probe plays recordings of real caches to the first
one, with its edges and decisions; the others are looked at, decided on and recorded at the usual
rate. Until SIGTERM.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

from ebbgate.config.settings import Config
from ebbgate.daemon.daemon import Daemon
from ebbgate.daemon.priority import Priority
from ebbgate.model.volume import Mode
from ebbgate.store.daemon_lock import DaemonLock
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.queries import History
from ebbgate.store.recorder import Recorder
from ebbgate.units import GIB
from tests.fake_machine.machine import probe_of
from tests.fake_sysfs import NO_DM, FakeSysfs, WatchedSysfs


class Ticking(Daemon):
    """Writes down when its ticks begin; all else is the daemon's own."""

    ticks: IO[str]

    async def _tick(self) -> None:
        self.ticks.write(f"{time.monotonic_ns()}\n")
        await super()._tick()


def machine(root: Path, names: Sequence[str]) -> None:
    """A /sys with these volumes, each of a disk and a cache set of its own."""
    fake = FakeSysfs(root)
    for number, name in enumerate(names):
        disk, cache = f"vd{number}d", f"vd{number}c"
        uuid = f"11111111-2222-3333-4444-{number:012d}"
        fake.disk(disk, f"254:{2 * number}")
        fake.disk(cache, f"254:{2 * number + 1}", size_bytes=GIB, rotational=False)
        devno = f"252:{number}"
        fake.bcache(name, backing=disk, cache=cache, devno=devno, set_uuid=uuid)
        fake.write(f"/sys/fs/bcache/{uuid}/internal/trigger_gc", "")


def main() -> None:
    """All volumes are enforced."""
    folder = Path(sys.argv[1])
    state, policies = folder / "state", folder / "policies"
    with closing(History.open(state / "history.db")) as history:
        machine(
            folder / "sys", sorted(n for n in history.statuses().volumes if n.startswith("bcache"))
        )
    sysfs = WatchedSysfs(folder / "sys", NO_DM)
    run = folder / "run"
    run.mkdir()
    config = Config(
        state, probe_of(folder), policy_dir=policies, mode=Mode.ENFORCE, runtime_dir=run
    )
    # As the daemon's own main does it.
    sys.setswitchinterval(0.0005)
    recorder = Recorder(config.history_path)
    journal = JournalWriter(config.journal_path, LastWritten(config.last_written_path))
    with DaemonLock(config.lock_path), (folder / "ticks").open("w", buffering=1) as ticks:
        asyncio.run(_run(Ticking(config, sysfs, recorder, journal, "this boot"), ticks))
        recorder.stop()
        journal.stop()


async def _run(daemon: Ticking, ticks: IO[str]) -> None:
    daemon.ticks = ticks
    # An ordinary process: at real-time priority readers could not change anything anyway.
    daemon.priority = Priority(0, lambda: ())
    await daemon.run()


if __name__ == "__main__":
    main()
