# SPDX-License-Identifier: GPL-2.0-only
"""Changes of policy files are followed; files with errors never replace valid policies."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbgate.errors import ConfigError
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import default_policy
from ebbgate.policy.language.choose import LocalTime
from ebbgate.policy_files import reader
from ebbgate.policy_files.active import ActivePolicies, local_time
from ebbgate.units import NS_PER_S
from tests.builders import volume

NIGHT = LocalTime(2 * 60, 0)
NOON = LocalTime(12 * 60, 0)


class Clock:
    """The hour, moved by a test."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> LocalTime:
        return self.at


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(f"version: 1\nname: {name}\nwhy: A test.\n{text}")
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The zone is UTC when the test begins, and as before when it has ended."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC0")
        time.tzset()
        yield patch
    time.tzset()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "policies.d"


def test_without_a_folder_everything_is_as_without_configuration(folder: Path) -> None:
    book = ActivePolicies(folder)
    assert book.policy_of(volume()) == default_policy(Kind.BCACHE)
    assert (book.problems, book.status().names) == ((), ())


def test_added_changed_and_removed_files_are_followed(folder: Path) -> None:
    book = ActivePolicies(folder)
    before = book.key_of(volume())
    path = write(folder, "mine", "strategies: [stream_bypass]\n")
    book.look()
    assert book.key_of(volume()) != before
    assert (book.policy_of(volume()).name, book.policy_of(volume()).destage) == ("mine", None)
    path.write_text(path.read_text().replace("stream_bypass", "idle_destage"))
    book.look()
    assert book.policy_of(volume()).streams is None
    path.unlink()
    book.look()
    assert book.policy_of(volume()) == default_policy(Kind.BCACHE)


def test_the_first_file_that_matches_counts(folder: Path) -> None:
    write(folder, "b", "strategies: []\n")
    write(folder, "a", "match: {kind: dm-cache}\nstrategies: [idle_destage]\n")
    book = ActivePolicies(folder)
    assert book.policy_of(volume()).name == "b"
    assert book.policy_of(replace(volume(), kind=Kind.DM_CACHE)).name == "a"


def test_a_file_with_errors_keeps_the_last_valid_policy(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(folder, "mine", "strategies: []\n")
    book = ActivePolicies(folder)
    good = book.policy_of(volume())
    path.write_text(path.read_text() + "stratgies: []\n")
    book.look()
    assert book.policy_of(volume()) == good
    (problem,) = book.problems
    assert problem.startswith(f"{path}:5:1: ")
    assert "strategies" in problem
    book.look(again=True)
    assert [r.message for r in caplog.records].count(problem) == 1, "logged once"
    path.write_text("version: 1\nname: mine\nwhy: Right again.\nstrategies: [idle_destage]\n")
    book.look()
    assert book.problems == ()
    assert book.policy_of(volume()).destage is not None


def test_a_fixed_policy_is_announced(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    path = write(folder, "mine", "strategies: []\n")
    book, text = ActivePolicies(folder), path.read_text()
    path.write_text("nonsense")
    book.look()
    path.write_text(text)
    book.look()
    assert caplog.records[-1].message == "policies: mine"


def test_a_key_without_effect_is_logged_when_the_policies_are_loaded(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(folder, "mine", "strategies: [idle_destage: {queue_target: 20ms}]\n")
    book = ActivePolicies(folder)
    book.look(again=True)
    assert len(book.status().notes or ()) == 1
    said = [each.message for each in caplog.records if "no effect" in each.message]
    (note,) = said
    assert note.startswith(f"{path}:4:")
    assert note.endswith(
        "idle_destage.queue_target: has no effect on bcache since version 0.2; remove it"
    )


def test_without_any_valid_policy_nothing_is_tuned(folder: Path) -> None:
    path = write(folder, "mine", "nonsense: 1\n")
    book = ActivePolicies(folder)
    policy = book.policy_of(volume())
    assert (policy.name, policy.destage, policy.streams) == ("observe-only", None, None)
    assert not book.status().kept
    path.unlink()
    book.look()
    assert book.policy_of(volume()) == default_policy(Kind.BCACHE)


def test_an_unreadable_file_is_an_error(folder: Path) -> None:
    write(folder, "mine", "strategies: []\n")
    book = ActivePolicies(folder)
    (folder / "other.yaml").symlink_to(folder / "other.yaml")
    (folder / "zzz.yaml").write_bytes(b"\xff\xfe\x00")
    book.look()
    assert book.problems
    assert book.policy_of(volume()).name == "mine"


def test_the_schedule_selects_the_overlay(folder: Path, clock: Clock) -> None:
    schedule = 'schedule:\n  - {name: night, at: "23:00-05:00", use: observe-only}\n'
    write(folder, "mine", schedule)
    book = ActivePolicies(folder, clock)
    day = book.key_of(volume())
    assert book.policy_of(volume()).destage is not None
    clock.at = NIGHT
    assert book.key_of(volume()) != day
    assert (book.policy_of(volume()).overlay, book.policy_of(volume()).destage) == ("night", None)


def test_a_change_of_the_time_zone_is_followed(zone: pytest.MonkeyPatch) -> None:
    friday_noon_ns = 1_795_780_800 * NS_PER_S
    assert local_time(friday_noon_ns) == LocalTime(12 * 60, 4)
    zone.setenv("TZ", "JST-9")
    assert local_time(friday_noon_ns) == LocalTime(21 * 60, 4)
    zone.setenv("TZ", "NZDT-13")
    assert local_time(friday_noon_ns) == LocalTime(60, 5)


def test_a_file_that_could_not_be_read_is_read_again_though_it_has_not_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, read = write(folder, "mine", "strategies: [stream_bypass]\n"), reader.read_policy

    def refuse(path: Path) -> bytes:
        if path != mine:
            return read(path)
        raise ConfigError(f"{path}: cannot be read: Permission denied", "check its permissions")

    with monkeypatch.context() as patch:
        patch.setattr(reader, "read_policy", refuse)
        book = ActivePolicies(folder)
        book.look()
    assert ["Permission denied" in each for each in book.problems] == [True]
    book.look()
    assert (book.problems, book.policy_of(volume()).name) == ((), "mine")


# ---- links --------------------------------------------------------------------------------------
def test_nothing_is_tuned_while_a_file_is_a_link_to_nothing(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "mine.yaml").symlink_to(tmp_path / "elsewhere/mine.yaml")
    book = ActivePolicies(folder)
    assert book.policy_of(volume()).name == "observe-only"
    (problem,) = book.problems
    assert f"mine.yaml is a link to {tmp_path}/elsewhere/mine.yaml, which is missing" in problem
    assert "restore or mount the target, or remove the link" in problem
    write(tmp_path / "elsewhere", "mine", "strategies: [stream_bypass]\n")
    book.look()
    assert (book.problems, book.policy_of(volume()).name) == ((), "mine")
    (tmp_path / "elsewhere/mine.yaml").unlink()
    book.look()
    assert (len(book.problems), book.policy_of(volume()).name) == (1, "mine")


def test_nothing_is_tuned_while_the_folder_is_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "policies.d").symlink_to(tmp_path / "elsewhere")
    book = ActivePolicies(tmp_path / "policies.d")
    assert book.policy_of(volume()).name == "observe-only"
    write(tmp_path / "elsewhere", "mine", "")
    book.look()
    assert (book.problems, book.policy_of(volume()).name) == ((), "mine")


def test_the_mark_of_an_editor_is_no_policy(folder: Path) -> None:
    write(folder, "mine", "")
    (folder / ".#mine.yaml").symlink_to("jo@nas.4711:1790000000")
    assert ActivePolicies(folder).problems == ()


def test_a_copy_with_a_hidden_name_is_no_policy(folder: Path) -> None:
    path = write(folder, "mine", "strategies: [stream_bypass]\n")
    (folder / ".ansible_tmp_mine.yaml").write_text(path.read_text())
    (folder / "._mine.yaml").write_bytes(b"\x00\x05\x16\x07")
    book = ActivePolicies(folder)
    assert (book.problems, book.status().names) == ((), ("mine",))
