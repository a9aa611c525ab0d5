# SPDX-License-Identifier: GPL-2.0-only
"""A daemon whose probe ends: what it saw is not taken for what is there now."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from ebbgate.model.volume import Mode
from ebbgate.probes import ebpf
from ebbgate.signals.frame import NO_RECORD
from tests.builders import probe_tick
from tests.unit.daemon.test_volume_set import VolumeSetHarness

HELLO = '{"t":"hello","ns":1,"protocol":1,"probe":"ebpf","version":"1","boot_id":"b","signals":{}}'
DEADLINE_S = 10.0


async def test_signals_are_unknown_as_soon_as_the_probe_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate that stayed open would not close when users return."""
    monkeypatch.setattr(ebpf, "BACKOFF_S", (60.0,))
    harness = VolumeSetHarness(tmp_path, Mode.ENFORCE)
    await harness.looks(1)
    line = json.dumps(probe_tick(ns=time.monotonic_ns(), state="idle"))
    program = harness.daemon.config.probe_path
    program.write_text(f"#!/bin/sh\necho '{HELLO}'; echo '{line}'; exit 3\n")
    program.chmod(0o755)
    probe = harness.daemon.probe
    run = asyncio.create_task(probe.run())
    async with asyncio.timeout(DEADLINE_S):
        while not probe.health.state.startswith("down"):
            await asyncio.sleep(0.001)
    signals = harness.daemon.volumes["bcache0"].signals
    assert signals.last_seen is not None
    assert signals.frame(signals.last_seen).missing["foreground"] == NO_RECORD
    run.cancel()
    harness.stop()
