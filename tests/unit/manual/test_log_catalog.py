# SPDX-License-Identifier: GPL-2.0-only
"""Every message of the log is in the table; systemd reads the catalogue that is made from it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from manual import log_catalog
from tests.house_rules import REPO

MESSAGES = log_catalog.messages()
PACKAGE = REPO / "controller" / "ebbgate"
IDS = Path(__file__).with_name("log_ids.txt")
LEVELS = {"info": 0, "warning": 0, "error": 0, "critical": 0, "exception": 0, "log": 1}
"""The methods of a logger, and the place of the message among their arguments."""


def calls() -> Iterator[tuple[str, ast.expr, int | None]]:
    """Yield place, message and number of values of each call; None where a tuple is passed."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "_LOG"
                and node.func.attr in LEVELS
            ):
                place = LEVELS[node.func.attr]
                values = node.args[place + 1 :]
                starred = any(isinstance(each, ast.Starred) for each in values)
                where = f"{path.relative_to(REPO)}:{node.lineno}"
                yield where, node.args[place], None if starred else len(values)


def test_every_call_above_debug_logs_a_message_of_the_table_with_its_values() -> None:
    for where, message, count in calls():
        assert isinstance(message, ast.Name), f"{where}: log a message of log_messages"
        assert message.id in MESSAGES, where
        wanted = len(re.findall(r"%[sdg]", MESSAGES[message.id].text))
        assert count in (None, wanted), where


def test_every_message_is_used_in_the_code() -> None:
    words: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "log_messages":
            words.update(re.findall(r"\b[A-Z_]+\b", path.read_text()))
    assert [name for name in MESSAGES if not words[name]] == []


def test_ids_and_titles_are_unique() -> None:
    assert all(
        re.fullmatch("[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}", each.id)
        for each in MESSAGES.values()
    )
    for texts in zip(*((each.id, each.title) for each in MESSAGES.values()), strict=True):
        assert len(set(texts)) == len(texts)


def test_a_known_id_stays_with_its_message_and_is_never_used_again() -> None:
    lines = [line.split() for line in IDS.read_text().splitlines() if not line.startswith("#")]
    now = {each.id: name for name, each in MESSAGES.items()}
    for id_, name, *gone in lines:
        assert now.get(id_) == (None if gone else name), f"{id_} was {name}: see {IDS.name}"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_says_what_it_means_and_what_to_do_in_sentences(name: str) -> None:
    message = MESSAGES[name]
    assert message.meaning.endswith(".")
    assert message.action.endswith(".")
    assert not message.title.endswith(".")


@pytest.mark.skipif(shutil.which("journalctl") is None, reason="no systemd here")
def test_systemd_reads_the_catalogue(tmp_path: Path) -> None:
    log_catalog.main(tmp_path / "usr/lib/systemd/catalog")
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    journalctl = ["journalctl", f"--root={tmp_path}"]
    done = subprocess.run(
        [*journalctl, "--update-catalog"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    listed = subprocess.run(
        [*journalctl, "--list-catalog"], capture_output=True, text=True, check=True
    ).stdout
    wanted = {f"{each.id} ebbgate: {each.title}" for each in MESSAGES.values()}
    assert wanted <= set(listed.splitlines())


def test_the_id_in_the_readme_is_that_of_a_history_that_cannot_be_written() -> None:
    text = (REPO / "packaging" / "README.md").read_text()
    assert f"MESSAGE_ID={MESSAGES['HISTORY_FAILED'].id}" in text
