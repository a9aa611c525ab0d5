# SPDX-License-Identifier: GPL-2.0-only
"""A daemon that is killed loses nothing that is older than a second, and leaves a sound file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.store.journal import read

REPO = Path(__file__).resolve().parents[3]
LATE_S = 1.0
"""A decision may be this young to be lost."""

WRITER = """
import sys, time
from itertools import count
from pathlib import Path
from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.model.status import VolumeStatus
from ebbgate.store.recorder import Recorder
from ebbgate.store.journal_writer import JournalWriter
from ebbgate.store.last_written import LastWritten
from tests.builders import action, busy_frame, decision, idle_edge, journal_entry, proposal
recorder = Recorder(Path(sys.argv[1]))
recorder.flush()
folder = Path(sys.argv[1]).parent
journal = JournalWriter(folder / "journal.db", LastWritten(folder / "last-written"))
for number in count():
    recorder.decision(decision(proposal(reason=f"number {number}")), number)
    recorder.outcomes([Outcome(action(), OutcomeKind.CHANGED, 1)], None)
    recorder.edge(idle_edge(number), 1)
    recorder.sample(busy_frame(number * 1000))
    recorder.live("bcache0", VolumeStatus(at_ns=number))
    if number % 50 == 0:
        journal.put(journal_entry(f"knob{number}"))
        print("journal", number, flush=True)
    print("told", number, time.monotonic(), flush=True)
    time.sleep(0.002)
"""


def written_until_killed(folder: Path, after_s: float) -> tuple[list[str], float]:
    """What a process said that writes a history, and when it was killed (monotonic)."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, folder / "history.db"],
        env={"PYTHONPATH": f"{REPO / 'controller'}:{REPO}:{':'.join(sys.path)}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    first = writer.stdout.readline()
    assert first, "the writer never wrote"
    # How long it runs is what is chosen at random.
    time.sleep(after_s)
    killed_s = time.monotonic()
    writer.kill()
    rest = writer.stdout.read()
    writer.stdout.close()
    writer.wait()
    return [first, *rest.splitlines()], killed_s


def check(folder: Path, said: list[str], killed_s: float) -> None:
    """Sound, every original there, every decision that is old enough there."""
    words = [line.split() for line in said]
    with closing(sqlite3.connect(folder / "history.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        reasons = "SELECT json_extract(document, '$.proposals[0].reason') FROM decisions"
        kept = {row[0] for row in connection.execute(reasons)}
    knobs = {entry.knob for entry in read(folder / "journal.db")}
    assert {f"knob{line[1]}" for line in words if line[0] == "journal"} <= knobs
    told = [line for line in words if line[0] == "told" and len(line) == 3]
    old = {f"number {line[1]}" for line in told if killed_s - float(line[2]) > LATE_S}
    assert old <= kept


@settings(max_examples=4)
@given(st.floats(min_value=0.0, max_value=2.0))
def test_a_killed_writer_leaves_a_sound_file_and_loses_at_most_a_second(after_s: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), *written_until_killed(Path(folder), after_s))


def test_a_writer_killed_repeatedly_loses_no_earlier_record(tmp_path: Path) -> None:
    kept = 0
    for after_s in (1.4, 0.1, 1.2):
        said, killed_s = written_until_killed(tmp_path, after_s)
        check(tmp_path, [line for line in said if line.startswith("journal")], killed_s)
        with closing(sqlite3.connect(tmp_path / "history.db")) as connection:
            (now,) = connection.execute("SELECT count(*) FROM decisions").fetchone()
        assert now >= kept
        kept = now
    assert kept > 0
