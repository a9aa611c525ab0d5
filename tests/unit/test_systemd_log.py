# SPDX-License-Identifier: GPL-2.0-only
"""Records reach the journal with priority and id; without a journal they go to stderr."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.errors import Unavailable
from ebbgate.log_messages.service import DAEMON_FAILED, PROBE_ENDED
from ebbgate.systemd_log import JournalHandler, datagram, is_journal, report_failure


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    """The receiving end of the journal's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "socket"))
        receiver.settimeout(5)
        yield receiver


@pytest.fixture
def logger(tmp_path: Path) -> Iterator[logging.Logger]:
    """A logger of a service under systemd."""
    made = logging.getLogger("test_systemd_log")
    handler = JournalHandler("ebbgated", tmp_path / "socket")
    handler.setFormatter(logging.Formatter("%(message)s"))
    made.addHandler(handler)
    made.propagate = False
    yield made
    made.removeHandler(handler)
    handler.close()


def entry(journal: socket.socket) -> dict[str, str]:
    """Return the fields of the next entry."""
    rest, fields = journal.recv(1 << 16), {}
    while rest:
        name, _, rest = rest.partition(b"\n")
        end = 8 + int.from_bytes(rest[:8], "little")
        fields[name.decode()] = rest[8:end].decode()
        assert rest[end : end + 1] == b"\n"
        rest = rest[end + 1 :]
    return fields


def test_a_message_is_sent_with_its_id_and_priority(
    journal: socket.socket, logger: logging.Logger
) -> None:
    logger.warning(PROBE_ENDED, "killed", 2.0)
    assert entry(journal) == {
        "MESSAGE": "the probe ended: killed; again in 2 s, signals are unknown till then",
        "MESSAGE_ID": PROBE_ENDED.id,
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "ebbgated",
    }


def test_a_record_of_a_library_has_no_id(journal: socket.socket, logger: logging.Logger) -> None:
    logger.error("from elsewhere: %s", "text")
    found = entry(journal)
    assert (found["MESSAGE"], found["PRIORITY"]) == ("from elsewhere: text", "3")
    assert "MESSAGE_ID" not in found


def test_a_stack_is_one_entry(journal: socket.socket, logger: logging.Logger) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        logger.exception(DAEMON_FAILED, "x")
    lines = entry(journal)["MESSAGE"].splitlines()
    assert (lines[0], lines[-1]) == ("ebbgated: x", "ValueError: why")


def test_without_a_journal_the_text_goes_to_stderr(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    (handler,) = (each for each in logger.handlers if isinstance(each, JournalHandler))
    handler.setStream(sys.stderr)
    logger.warning(PROBE_ENDED, "killed", 2.0)
    assert capsys.readouterr().err.startswith("the probe ended: killed;")


def test_bytes_that_are_no_text_can_be_sent() -> None:
    assert datagram({"A": "\udcff"}) == b"A\n" + (1).to_bytes(8, "little") + b"?\n"


def test_only_the_file_that_systemd_names_is_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    found = path.stat()
    fd = os.open(path, os.O_RDONLY)
    assert is_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}, fd)
    assert not is_journal({"JOURNAL_STREAM": "1:2"}, fd)
    assert not is_journal({}, fd)
    os.close(fd)


def test_the_last_error_is_a_message_in_the_journal_and_a_line_elsewhere(
    journal: socket.socket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = Unavailable("the probe cannot run here", "see ebbgate doctor")
    report_failure("ebbgated", DAEMON_FAILED, error)
    said = "ebbgated: the probe cannot run here\n  see ebbgate doctor"
    assert capsys.readouterr().err == f"{said}\n"
    handler = JournalHandler("ebbgated", tmp_path / "socket")
    logging.getLogger().addHandler(handler)
    try:
        report_failure("ebbgated", DAEMON_FAILED, error)
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    found = entry(journal)
    assert (found["MESSAGE"], found["MESSAGE_ID"]) == (said, DAEMON_FAILED.id)
    assert found["PRIORITY"] == "2"
