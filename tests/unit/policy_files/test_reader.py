# SPDX-License-Identifier: GPL-2.0-only
"""Policies are read in a thread, and bounded in number and bytes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from ebbgate.daemon.loop_silence import LoopSilence, measured_loop
from ebbgate.errors import ConfigError
from ebbgate.model.volume import Mode
from ebbgate.policy.language.parse import Parsed, parse
from ebbgate.policy_files import reader, writer
from ebbgate.policy_files.active import ActivePolicies
from ebbgate.policy_files.validation import check_unsaved
from ebbgate.units import KIB
from tests.control_fixture import SILENCE_NS_MAX
from tests.unit.daemon.test_volume_set import VolumeSetHarness

_CONDITION = '{dirty_ratio: "> 40%"}'


def large(name: str) -> str:
    """A valid policy of nearly 64 KiB that takes long to parse."""
    text = f"version: 1\nname: {name}\nwhy: A test.\nrules:\n"
    for number in range(50):
        group = f"      - all: [{', '.join([_CONDITION] * 5)}]\n"
        text += f"  - name: rule{number}\n    why: A test.\n    set: {{destage_rate: max}}\n"
        text += "    when:\n     any:\n" + group * 4
    text += "# The rest.\n" * ((60 * KIB - len(text)) // 12)
    assert len(text) > 59 * KIB
    return text


def fill(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"p{number:02}.yaml").write_text(large(f"p{number:02}"))


def test_many_large_files_keep_the_loop_awake(tmp_path: Path) -> None:
    harness = VolumeSetHarness(tmp_path, Mode.ADVISE)
    folder = harness.daemon.policies.folder
    # In processor time: that of the loop and of the thread that parses, not of other programs.
    silence = LoopSilence(time.process_time_ns)

    async def scenario() -> float:
        await harness.looks(1)
        fill(folder, 17)
        silence.begin()
        # It measures from the next turn of the loop on.
        await asyncio.sleep(0)
        begun = time.process_time()
        await harness.daemon.follow_policies()
        return time.process_time() - begun

    with asyncio.Runner(loop_factory=lambda: measured_loop(silence)) as runner:
        took_s = runner.run(scenario())
    harness.stop()
    assert harness.daemon.policies.problems == ()
    assert len(harness.daemon.policies.status().names or ()) == 17
    assert took_s > 0.5, "the files are too small to show anything"
    assert silence.max_ns < SILENCE_NS_MAX


def test_the_same_text_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 2)
    book, parsed = ActivePolicies(tmp_path), list[str]()

    def counted(text: str | bytes, file: str) -> Parsed:
        parsed.append(file)
        return parse(text, file)

    monkeypatch.setattr(reader, "parse", counted)
    (tmp_path / "p01.yaml").write_text(large("p01").replace("A test.", "Another test.", 1))
    book.look()
    writer.save(tmp_path, "mine", "version: 1\nname: mine\nwhy: A test.\n")
    assert [Path(file).name for file in parsed] == ["p01.yaml", "mine.yaml"]


@pytest.mark.parametrize(
    ("count", "size_bytes", "why"),
    [
        (65, 10, "has 65 policy files; at most 64 are allowed"),
        (17, 64 * KIB, "at most 1 MiB are allowed"),
    ],
)
def test_too_many_files_or_bytes_keep_the_last_valid_policies(
    tmp_path: Path, count: int, size_bytes: int, why: str
) -> None:
    (tmp_path / "mine.yaml").write_text("version: 1\nname: mine\nwhy: A test.\n")
    book = ActivePolicies(tmp_path)
    for number in range(count - (count == 65)):
        (tmp_path / f"p{number}.yaml").write_text("#" * size_bytes)
    book.look()
    (problem,) = book.problems
    assert why in problem
    assert "move those that are not needed" in problem
    assert book.status().names == ("mine",)
    with pytest.raises(ConfigError, match="are allowed"):
        writer.save(tmp_path, "other", "version: 1\nname: other\nwhy: A test.\n")
    assert not (tmp_path / "other.yaml").exists()


def test_the_number_of_reported_problems_is_bounded(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"p{number:02}.yaml").write_text("nonsense: 1\n")
    book = ActivePolicies(tmp_path)
    assert len(book.problems) == 21
    assert "more errors" in book.problems[-1]


def test_a_candidate_may_have_the_name_of_a_policy_that_is_kept(tmp_path: Path) -> None:
    text = "version: 1\nname: mine\nwhy: A test.\n"
    (tmp_path / "mine.yaml").write_text(text)
    found = check_unsaved(text + "strategies: []\n", "the policy", tmp_path).document
    assert found is not None and found.strategies == ()


def test_a_bad_candidate_is_refused_with_all_its_places() -> None:
    text = "version: 1\nname: x\nwhy: y.\nstratgies: []\nrules: 7\n"
    found = "\n".join(map(str, check_unsaved(text, "the policy", Path("/nonexistent")).problems))
    assert "the policy:4:1: " in found and "the policy:5:" in found
