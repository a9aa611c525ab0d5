# SPDX-License-Identifier: GPL-2.0-only
"""Warnings of the probe that come each second fill no log."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.daemon.probe_warnings import ProbeWarnings
from ebbgate.model.records import ProbeWarning
from ebbgate.model.volume import Mode
from tests.unit.daemon.test_volume_set import VolumeSetHarness


def missed(count: int, text: str = "program runs that the kernel skipped") -> ProbeWarning:
    return ProbeWarning(count, "missed", count, text)


async def test_a_count_that_grows_is_logged_when_it_has_doubled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    harness = VolumeSetHarness(tmp_path, Mode.ENFORCE)
    for count in range(15, 4015):
        harness.daemon.on_record(missed(count))
    said = [text for text in caplog.text.splitlines() if "the kernel skipped" in text]
    assert [text.rpartition("(")[2] for text in said] == [
        f"{15 << doubled} so far)" for doubled in range(9)
    ]
    assert "missed" in harness.daemon.probe.health.complaints
    harness.stop()


def test_a_count_that_begins_anew_another_text_and_another_kind_are_news() -> None:
    warnings = ProbeWarnings()
    first = (missed(100), missed(3), missed(4, "other"), ProbeWarning(1, "streams", 4, "other"))
    assert all(warnings.is_news(each) for each in first)
    assert not warnings.is_news(missed(5, "other"))


def test_the_same_count_again_is_news() -> None:
    """A refusal has no count: each one is reported with 1."""
    warnings = ProbeWarnings()
    assert warnings.is_news(missed(1))
    assert warnings.is_news(missed(1))
