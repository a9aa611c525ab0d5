# SPDX-License-Identifier: GPL-2.0-only
"""What each shipped policy does otherwise than `adaptive`, on a recording that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.cli.app import main
from ebbgate.policy_files import reader
from tests.golden import check_golden

FOLDER = Path(__file__).parent
GOLDEN = FOLDER / "policies"
# `adaptive` itself is what all other golden texts are about.
RECORDINGS = {
    "backup-window": "sim-mixed-stream",
    "database": "sim-mixed-stream",
    "drain-now": "sim-trickle",
    "nas-sleep": "lab-dm-gap-drain",
    "observe-only": "sim-trickle",
    "vm-images": "lab-mixed-stream",
}


@pytest.mark.parametrize("policy", RECORDINGS)
def test_a_shipped_policy_does_what_was_reviewed(
    policy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "118")
    recording = FOLDER / f"{RECORDINGS[policy]}.jsonl"
    assert main(["replay", str(recording), "--policy", policy, "--against", "adaptive"]) == 0
    text = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    check_golden(GOLDEN / f"{policy}.golden", text, "make test-replay UPDATE=1")
    changed = [line for line in text.splitlines()[3:] if line.strip()[:2] in ("- ", "+ ")]
    assert len(changed) > 1, "nothing differs: another recording shows more"


def test_every_shipped_policy_has_a_golden_text() -> None:
    names = {document.name for document in reader.shipped()}
    # No recording has the misses on which warm-hot acts.
    assert names == {*RECORDINGS, "adaptive", "warm-hot"}
    assert {path.stem for path in GOLDEN.glob("*.golden")} == set(RECORDINGS)
