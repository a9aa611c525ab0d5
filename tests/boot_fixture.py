# SPDX-License-Identifier: GPL-2.0-only
"""A machine that boots with other names for its volumes, and people who choose. I/O: files."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from ebbgate.config.settings import Config
from ebbgate.daemon.daemon import Daemon
from ebbgate.intents.database import OverrideDatabase
from ebbgate.log_messages.volumes import OVERRIDES_FOLLOWED, OVERRIDES_OF_ANOTHER
from ebbgate.model.override import Override, OverrideKind
from ebbgate.model.volume import Mode
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from ebbgate.store.recorder import Recorder
from tests.fake_sysfs import NO_DM, FakeSysfs, WatchedSysfs
from tests.volume_loop_fixture import DEADLINE_S

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
AT_NS = 1_700_000_000 * 10**9
SET = Override(OverrideKind.SET, "bcache0", "jo", AT_NS, None, "writeback_percent", "20")
HOLD = Override(OverrideKind.HOLD, "bcache1", "jo", AT_NS)


def machine(root: Path, *uuids: str) -> FakeSysfs:
    """bcache0, bcache1, ... whose backing devices have these uuids; empty: the kernel has none."""
    fake = FakeSysfs(root)
    for number, uuid in enumerate(uuids):
        disk, ssd, start = f"sd{number}", f"ssd{number}", 32 * number
        fake.disk(disk, f"8:{start}")
        fake.disk(ssd, f"8:{start + 16}", rotational=False)
        fake.bcache(
            f"bcache{number}",
            backing=disk,
            cache=ssd,
            devno=f"252:{number}",
            set_uuid=f"11111111-2222-3333-4444-{number:012}",
            files={"backing_dev_uuid": uuid},
        )
        if not uuid:
            fake.remove(f"/sys/block/bcache{number}/bcache/backing_dev_uuid")
    return fake


class Machine:
    """A machine that boots; the state of the daemon outlives a boot."""

    def __init__(self, folder: Path, log: pytest.LogCaptureFixture) -> None:
        self.state = folder / "state"
        self.state.mkdir()
        self._folder, self._log, self._boots = folder, log, 0

    @asynccontextmanager
    async def boot(self, *uuids: str, mode: Mode = Mode.OBSERVE) -> AsyncIterator[Daemon]:
        """A daemon on volumes with these uuids, in this mode unless a person chose another one."""
        self._boots += 1
        self._log.clear()
        here = self._folder / f"boot-{self._boots}"
        sysfs = WatchedSysfs(machine(here / "sys", *uuids).root, NO_DM)
        recorder, last = Recorder(self.state / "history.db"), LastWritten(here / "last-written")
        journal = JournalWriter(here / "journal.db", last)
        config = Config(
            *(self.state, here / "no-probe"),
            mode=mode,
            runtime_dir=here / "run",
            policy_dir=here / "policies.d",
        )
        daemon = Daemon(config, sysfs, recorder, journal, f"boot {self._boots}")
        try:
            await daemon.overrides.load()
            await daemon.volume_set.discover()
            await on_disk(daemon)
            yield daemon
            await on_disk(daemon)
        finally:
            await asyncio.to_thread(daemon.volume_set.release_all)
            daemon.overrides.writer.submit(OverrideDatabase.close).result(DEADLINE_S)
            for each in (recorder, journal):
                each.stop()
            last.close()

    def logged(self) -> list[str]:
        """What was logged on volumes with other names, in this boot."""
        ids = (OVERRIDES_FOLLOWED, OVERRIDES_OF_ANOTHER)
        return [each.getMessage() for each in self._log.records if each.msg in ids]

    def rows(self, table: str) -> list[tuple[str, str]]:
        """The name and the uuid of each row in force."""
        over = "" if table == "modes" else "AND ended_unix_ns IS NULL"
        with closing(sqlite3.connect(self.state / "overrides.db")) as connection:
            return connection.execute(
                f"SELECT volume, device_uuid FROM {table} WHERE invalid IS NULL {over} ORDER BY id"
            ).fetchall()


async def on_disk(daemon: Daemon) -> None:
    """All that was to be written is."""
    # What was begun is queued first, and is known to be done last.
    for _ in range(2):
        for _ in range(5):
            await asyncio.sleep(0)
        await asyncio.wrap_future(daemon.overrides.writer.submit(lambda database: None))


async def registered_again(daemon: Daemon, *uuids: str) -> None:
    """The daemon runs on, and bcache0, bcache1, ... are these volumes now."""
    for number, uuid in enumerate(uuids):
        here = f"/sys/block/bcache{number}/bcache/backing_dev_uuid"
        daemon.sysfs.locate(here).write_text(f"{uuid}\n")
    await daemon.volume_set.discover()


async def choose(daemon: Daemon, *overrides: Override, **modes: Mode) -> None:
    """A person asks for these."""
    registry = daemon.overrides
    registry.enforce(await registry.keep(overrides))
    for name, mode in modes.items():
        await registry.keep_mode(name, mode)
        daemon.volumes[name].set_mode(mode, "requested")


def in_force(daemon: Daemon) -> dict[str, tuple[Mode, list[OverrideKind]]]:
    return {
        name: (loop.mode, [each.override.kind for each in daemon.overrides.of(name)])
        for name, loop in daemon.volumes.items()
    }
