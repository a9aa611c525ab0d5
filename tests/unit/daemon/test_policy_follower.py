# SPDX-License-Identifier: GPL-2.0-only
"""Each volume has the policy that the files and the time of day select."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.model.volume import Mode
from ebbgate.policy.language.choose import LocalTime
from tests.unit.daemon.test_volume_set import VolumeSetHarness


async def test_a_schedule_that_begins_while_a_volume_is_added_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "policies.d"
    folder.mkdir()
    entry = "{name: night, at: '01:00-02:00', use: drain-now}"
    (folder / "mine.yaml").write_text(f"version: 1\nname: mine\nschedule: [{entry}]\n")
    harness = VolumeSetHarness(tmp_path, Mode.ADVISE)
    times = [LocalTime(59), LocalTime(60)]
    volumes = harness.daemon.volume_set
    monkeypatch.setattr(
        volumes.policies, "_now", lambda: times.pop(0) if len(times) > 1 else times[0]
    )
    try:
        await harness.looks(1)
        volumes.follower.apply()
        assert harness.daemon.volumes["bcache0"].policy.overlay == "night"
    finally:
        harness.stop()
