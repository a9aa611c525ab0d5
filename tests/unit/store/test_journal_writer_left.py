# SPDX-License-Identifier: GPL-2.0-only
"""Originals that could not be restored wait in the journal's writer for their volume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.store.journal import read
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten, Values
from tests.builders import journal_entry

DEPTH = "/sys/block/vda/device/queue_depth"
A, B = (
    journal_entry(
        "queue_depth:vda", volume=name, path=DEPTH, original="32", last_written="8", at_unix_ns=n
    )
    for n, name in enumerate(("bcache0", "bcache1"))
)


@pytest.fixture
def last(tmp_path: Path) -> Iterator[LastWritten]:
    with closing(LastWritten(tmp_path / "last-written")) as opened:
        yield opened


@pytest.fixture
def writer(tmp_path: Path, last: LastWritten) -> Iterator[JournalWriter]:
    made = JournalWriter(tmp_path / "journal.db", last)
    yield made
    made.stop()


def test_a_volume_takes_its_own_entries_once_with_their_last_values(
    writer: JournalWriter, last: LastWritten, tmp_path: Path
) -> None:
    for each in (A, B):
        writer.put(each)
    writer.writing(A, "4", "8")
    writer.keep_unrestored([A, B])
    assert writer.take_unrestored("bcache0") == [(A, Values("4", "8"))]
    assert writer.take_unrestored("bcache0") == []
    last.end(B)
    assert writer.take_unrestored("bcache1") == [(B, None)], "its values are lost"
    assert read(tmp_path / "journal.db") == [A, B], "until they are restored"


def test_the_value_of_a_table_is_that_of_its_entry(writer: JournalWriter) -> None:
    table = journal_entry("table", original="0 8 a", last_written="0 8 b")
    writer.keep_unrestored([writer.put(table)])
    assert writer.take_unrestored("bcache0") == [(table, Values("0 8 b", "0 8 b"))]


def test_a_volume_that_is_gone_keeps_no_other_one_from_a_restore(writer: JournalWriter) -> None:
    for each in (A, B):
        writer.put(each)
    writer.keep_unrestored([A])
    assert writer.claims.disclaim(B) is False


def test_the_record_of_an_original_that_is_replaced_is_free(
    writer: JournalWriter, last: LastWritten
) -> None:
    first = writer.put(journal_entry(original="10", last_written="40", at_unix_ns=1))
    writer.put(journal_entry(original="25", last_written="0", at_unix_ns=2))
    assert last.values(first) is None
