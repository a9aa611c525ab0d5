# SPDX-License-Identifier: GPL-2.0-only
"""A probe that hangs is started again; one that has nothing to say is left alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ebbgate.probes import ebpf
from tests.unit.probes.test_ebpf import ProbeHarness, warnings

TRACKED = '{"t":"track","ns":2,"vol":"bcache0","kind":"bcache","class":"ok"}'
UNTRACKED = '{"t":"untrack","ns":3,"vol":"bcache0","why":"requested"}'


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProbeHarness:
    monkeypatch.setattr(ebpf, "BACKOFF_S", (0.001,))
    monkeypatch.setattr(ebpf, "_EXIT_S", 0.1)
    return ProbeHarness(tmp_path)


def test_a_probe_that_follows_a_volume_and_sends_nothing_is_started_again(
    harness: ProbeHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ebpf, "_SILENT_S", 0.05)
    stopped = f"hello; echo '{TRACKED}'; kill -STOP $$"
    harness.script(f"[ $run -gt 1 ] || {{ {stopped}; }}; hello; stay")
    harness.run_until(lambda: harness.restarts == 2 and harness.probe.health.state == "running")
    assert sum("sent nothing" in text for text in warnings(caplog)) == 1


@pytest.mark.parametrize("follows", ["", f"; echo '{TRACKED}'; echo '{UNTRACKED}'"])
def test_a_probe_without_volumes_may_be_silent(
    harness: ProbeHarness, monkeypatch: pytest.MonkeyPatch, follows: str
) -> None:
    silences = list[object]()
    wait = asyncio.wait

    async def soon(*waited: Any, timeout: float | None = None) -> Any:
        silences.append(timeout)
        return await wait(*waited, timeout=0.01)

    harness.script(f"hello{follows}; stay")
    monkeypatch.setattr(asyncio, "wait", soon)
    harness.run_until(lambda: len(silences) > 10)
    assert harness.restarts == 1
