# SPDX-License-Identifier: GPL-2.0-only
"""Volumes that the probe refuses to track: reported once, and tried again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ebbgate.model.records import ProbeWarning, Tracked, TrackRefused
from ebbgate.model.volume import Mode
from ebbgate.probes.ebpf import EbpfProbe
from ebbgate.probes.protocol import NOT_TRACKED
from tests.fake_sysfs import SET_UUID
from tests.unit.daemon.test_volume_set import VolumeSetHarness


@dataclass
class Tracking:
    """`sent`: the commands that the probe got."""

    harness: VolumeSetHarness
    sent: list[str] = field(default_factory=list)


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracking]:
    sent: list[str] = []
    monkeypatch.setattr(EbpfProbe, "command", lambda _, line: sent.append(line))
    harness = VolumeSetHarness(tmp_path, Mode.ENFORCE)
    yield Tracking(harness, sent)
    harness.stop()


async def test_a_refused_volume_is_reported_once_with_the_reason(tracking: Tracking) -> None:
    harness = tracking.harness
    await harness.looks(1)
    harness.daemon.on_record(TrackRefused("bcache0", 1, "boot with another setting"))
    harness.daemon.on_record(ProbeWarning(2, NOT_TRACKED, 1, "not tracked: wait bcache0 1"))
    complaints = harness.daemon.probe.health.complaints
    assert complaints == {"refused": "bcache0: boot with another setting"}


async def test_a_refused_volume_is_tracked_once_another_one_has_left(
    tracking: Tracking, caplog: pytest.LogCaptureFixture
) -> None:
    harness, sent = tracking.harness, tracking.sent
    daemon = harness.daemon
    harness.fake.disk("vdc", "254:32", rotational=False)
    harness.fake.partition("vda", "vda9", "254:9")
    uuid = SET_UUID.replace("5", "6")
    harness.fake.bcache("bcache1", backing="vda9", cache="vdc", devno="252:1", set_uuid=uuid)
    await daemon.volume_set.discover()
    for _ in range(2):
        daemon.on_record(TrackRefused("bcache1", 1, "16 volumes are tracked already"))
    assert caplog.text.count("16 volumes") == 1
    assert "refused" in daemon.probe.health.complaints
    sent.clear()
    harness.fake.sysfs.locate("/sys/block/bcache0").unlink()
    await daemon.volume_set.discover()
    words = [line.split()[:2] for line in sent]
    assert words[:2] == [["untrack", "bcache0"], ["track", "bcache1"]]
    assert ["wait", "bcache1"] in words
    daemon.on_record(Tracked("bcache1", 2))
    assert daemon.probe.health.complaints == {}
    await daemon.volume_set.discover()
    assert len(sent) == len(words)
