# SPDX-License-Identifier: GPL-2.0-only
"""ebbgated as a process, on a machine of files. I/O: processes."""

from __future__ import annotations

from pathlib import Path

from tests.played import machine
from tests.programs import running, until


def test_a_second_daemon_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    machine.make(tmp_path)
    argv = machine.argv(tmp_path, "daemon")
    with running(tmp_path, "first", argv) as first:
        until("the first one", lambda: first.said("(mode enforce)"))
        with running(tmp_path, "second", argv) as second:
            assert second.process.wait(30) == 75
        assert "another ebbgated runs here" in second.log.read_text()
        assert first.process.poll() is None
