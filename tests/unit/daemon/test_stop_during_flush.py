# SPDX-License-Identifier: GPL-2.0-only
"""ebbgated stops while dm-writecache writes back for `ebbgate clean`: no knob waits for that."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from ebbgate.actuators.knob_writer import KnobWriter
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.model.volume import Mode
from ebbgate.policy.defaults import default_policy
from ebbgate.probes.topology import discover
from ebbgate.probes.volume_state import read_state
from ebbgate.units import NS_PER_S
from tests.fake_dm import WRITECACHE, FakeDm, fake_lvm
from tests.fake_sysfs import FakeSysfs, WatchedSysfs
from tests.unit.daemon.test_volume_set import VolumeSetHarness
from tests.volume_loop_fixture import DEADLINE_S, RecordingSink
from tests.waiting import until


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[VolumeSetHarness]:
    made = VolumeSetHarness(tmp_path / "daemon", Mode.ADVISE)
    yield made
    made.stop()


def writecache(root: Path) -> VolumeLoop:
    """A volume of dm-writecache in enforce."""
    fake = FakeSysfs(root)
    fake.disk("vda", "254:0")
    fake.disk("vdb", "254:16", rotational=False)
    dm = fake_lvm(fake, dataclasses.replace(WRITECACHE, messages=[]))
    sysfs = WatchedSysfs(root, dm)
    volume, sink, now_ns = next(iter(discover(sysfs))), RecordingSink(), time.monotonic_ns()
    writer = KnobWriter(sysfs, volume, sink, "boot")
    policy = default_policy(volume.kind)
    loop = VolumeLoop(volume, writer, policy, sink, lambda _text: None, Mode.ENFORCE)
    loop.on_tick(read_state(sysfs, volume, now_ns), knobs_settled=True)
    return loop


def test_a_stop_neither_waits_for_it_nor_names_the_volume(
    harness: VolumeSetHarness,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    written_back, loop = Event(), writecache(tmp_path / "sys")
    # The kernel answers the message `flush` when all is written back.
    monkeypatch.setattr(FakeDm, "message", lambda *_: written_back.wait())
    harness.daemon.volume_set.loops["vg-data"] = loop
    try:
        loop.clean(3600 * NS_PER_S, "anna")
        until(lambda: loop.writer.current_write is not None)
        begun_s = time.monotonic()
        assert harness.daemon.volume_set.release_all() == []
        assert time.monotonic() - begun_s < 5
        assert "hangs" not in caplog.text
    finally:
        written_back.set()
        assert loop.worker.stop(DEADLINE_S)
        del harness.daemon.volume_set.loops["vg-data"]
