# SPDX-License-Identifier: GPL-2.0-only
"""What an earlier daemon left: errors have a next step, and a restore may be ended at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import EbbgateError, PermissionDenied, Unavailable
from ebbgate.store import journal_salvage
from ebbgate.store.journal import Journal
from ebbgate.store.last_written import LastWritten, Values
from ebbgate.store.unrestored import UnrestoredOriginals
from tests.builders import journal_entry

ENTRY = journal_entry(original="10", last_written="40")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(Journal.open(tmp_path / "journal.db")) as journal:
        journal.put(ENTRY)
    return tmp_path / "journal.db"


@pytest.fixture
def last(tmp_path: Path) -> Iterator[LastWritten]:
    with closing(LastWritten(tmp_path / "last-written")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "error", "kind", "text"),
    [
        ("open", sqlite3.OperationalError("a fault"), Unavailable, "cannot be used: a fault"),
        ("open", OSError(5, "a fault"), Unavailable, "cannot be used: .* a fault"),
        ("open", PermissionDenied("not allowed"), PermissionDenied, "^not allowed$"),
        ("entries", sqlite3.OperationalError("a fault"), Unavailable, "cannot be used: a fault"),
    ],
)
def test_a_journal_of_which_nothing_can_be_read_is_an_error_for_people(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    error: Exception,
    kind: type[EbbgateError],
    text: str,
) -> None:
    """The start of the daemon goes on after no other error."""

    def fail(*_arguments: Any) -> None:
        raise error

    monkeypatch.setattr(journal_salvage, "salvage", lambda _path: ([], False))
    monkeypatch.setattr(Journal, name, fail)
    with pytest.raises(kind, match=text):
        UnrestoredOriginals.open(path, None, renew=False)


def test_what_a_restore_expects_outlives_it(path: Path, last: LastWritten, tmp_path: Path) -> None:
    """It may be ended in the middle of a switch of a scheduler, which resets other knobs."""
    last.begin(ENTRY)
    with closing(UnrestoredOriginals.open(path, last, renew=False)) as found:
        found.writing(ENTRY, "128", "40")
        assert found.values(ENTRY) == Values("128", "40")
    with closing(LastWritten(tmp_path / "last-written")) as later:
        assert later.values(ENTRY) == Values("128", "40")


def test_values_that_are_lost_are_not_made_up(path: Path, last: LastWritten) -> None:
    for opened in (last, None):
        with closing(UnrestoredOriginals.open(path, opened, renew=False)) as found:
            found.writing(ENTRY, "128", "40")
            assert found.values(ENTRY) is None
