# SPDX-License-Identifier: GPL-2.0-only
"""Programs that tests start do not outlive them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.programs import environment
from tests.waiting import until

STARTER = """
import sys, time
from pathlib import Path
from tests.programs import running
with running(Path(sys.argv[1]), "server", ["sleep", "600"]) as server:
    print(server.process.pid, flush=True)
    time.sleep(600)
"""


def command_line(pid: int) -> bytes:
    """Return that of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_killed_test_run_leaves_no_server(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        # Before that, it is still `setpriv`, or a copy of the starter.
        until(lambda: command_line(pid).startswith(b"sleep"))
        starter.kill()
    until(lambda: not command_line(pid), "the server is gone")
