# SPDX-License-Identifier: GPL-2.0-only
"""Recorded probe streams lead to the decisions that were reviewed (tests/replay/README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.probes.recording import Damaged, RecordingHeader, read_recording
from tests.golden import check_golden
from tests.replay.decision_text import replay_lines

FOLDER = Path(__file__).parent
RECORDINGS = sorted(FOLDER.glob("*.jsonl"))

each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)


@each_recording
def test_the_recording_leads_to_the_reviewed_decisions(recording: Path) -> None:
    with recording.open() as lines:
        text = "\n".join(replay_lines(lines)) + "\n"
    check_golden(recording.with_suffix(".golden"), text, "make test-replay UPDATE=1")


@each_recording
def test_the_recording_is_complete_and_names_its_origin(recording: Path) -> None:
    with recording.open() as lines:
        records = list(read_recording(lines))
    assert isinstance(records[0], RecordingHeader)
    assert records[0].text
    assert not [record for record in records if isinstance(record, Damaged)]
    assert recording.stem in (FOLDER / "README.md").read_text(), "list it in README.md"


def test_every_golden_text_has_its_recording() -> None:
    assert RECORDINGS
    assert {path.stem for path in FOLDER.glob("*.golden")} <= {path.stem for path in RECORDINGS}
