# SPDX-License-Identifier: GPL-2.0-only
"""Policies that are saved and removed are followed at once; the answer says by which volumes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ebbgate.model.override import IntentKind
from tests.intent_fixture import Answered, IntentHarness, answer

MINE = "version: 1\nname: mine\nwhy: A test.\nstrategies: [stream_bypass]\n"


def save(intents: IntentHarness, name: str = "mine", text: str = MINE) -> Answered:
    return intents.ask(IntentKind.POLICY_SAVE, None, name=name, text=text)


@pytest.fixture
def folder(intents: IntentHarness) -> Path:
    return intents.folder / "policies.d"


def running(intents: IntentHarness) -> str:
    return intents.volume.loop.policy.name


def test_a_saved_policy_is_in_force_and_names_its_volumes(
    intents: IntentHarness, folder: Path
) -> None:
    path = folder / "mine.yaml"
    intent = save(intents)
    assert answer(intent) == (True, f"policy mine is saved in {path}; used by: bcache0")
    assert intents.log.rows[0].who == "jo"
    assert running(intents) == "mine"
    assert intents.volume.loop.policy.destage is None
    assert path.read_text() == MINE


def test_a_policy_for_other_volumes_is_reported(intents: IntentHarness) -> None:
    text = MINE + 'match: {volume: "bcache7"}\n'
    assert str(save(intents, text=text).outcome).endswith("no volume uses it")
    assert running(intents) == "adaptive"


def test_an_invalid_policy_is_refused_with_its_lines_and_changes_nothing(
    intents: IntentHarness, folder: Path
) -> None:
    save(intents)
    ok, text = answer(save(intents, text=MINE.replace("strategies", "stratgies")))
    assert ok is False
    assert f"{folder / 'mine.yaml'}:4:1: " in str(text)
    assert "did you mean strategies?" in str(text)
    assert (running(intents), (folder / "mine.yaml").read_text()) == ("mine", MINE)


def test_a_policy_next_to_an_invalid_file_is_kept_but_not_applied(
    intents: IntentHarness, folder: Path
) -> None:
    folder.mkdir()
    (folder / "broken.yaml").write_text("nonsense: [")
    ok, text = answer(save(intents))
    assert ok is True
    assert "the former policies stay in force until this is corrected" in str(text)
    assert f"{folder / 'broken.yaml'}:1:" in str(text)
    assert (folder / "mine.yaml").read_text() == MINE
    (folder / "broken.yaml").unlink()
    asyncio.run(intents.daemon.follow_policies())
    assert running(intents) == "mine"


def test_a_removed_policy_is_followed_and_names_the_new_one(
    intents: IntentHarness, folder: Path
) -> None:
    save(intents)
    removed = intents.ask(IntentKind.POLICY_REMOVE, None, name="mine")
    path = folder / "mine.yaml"
    assert answer(removed) == (
        True,
        f"{path} is removed; its content is in mine.yaml~; bcache0 now uses adaptive",
    )
    assert running(intents) == "adaptive"


def test_to_remove_what_is_not_there_is_refused(intents: IntentHarness) -> None:
    ok, text = answer(intents.ask(IntentKind.POLICY_REMOVE, None, name="mine"))
    assert (ok, "there is no" in str(text)) == (False, True)


@pytest.mark.parametrize("name", ["../mine", "/etc/passwd", "a.b", ""])
def test_a_name_outside_the_folder_writes_nothing(
    intents: IntentHarness, folder: Path, name: str
) -> None:
    ok, text = answer(save(intents, name=name))
    assert (ok, "must have only a-z, 0-9 and -" in str(text)) == (False, True)
    assert not folder.exists()
