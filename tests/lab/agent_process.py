# SPDX-License-Identifier: GPL-2.0-only
"""Commands that the guest's agent starts and lets run.

I/O: processes; their output goes to files in /run/lab, so that it can be read while they run.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

OUTPUT = Path("/run/lab")


def end_group(pid: int, number: int) -> None:
    """Signal a process group that may have ended already."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.Signals(number))


class Processes:
    """The running commands by number."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._owners: dict[int, str] = {}

    def spawn(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a command; the reply names its output files."""
        number = next(self._numbers)
        paths = {name: OUTPUT / f"{number}.{name}" for name in ("stdout", "stderr")}
        with paths["stdout"].open("wb") as out, paths["stderr"].open("wb") as err:
            self._running[number] = subprocess.Popen(
                request["argv"],
                stdin=subprocess.PIPE if request["stdin"] else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **request["env"]},
                cwd=request["cwd"],
                start_new_session=True,
            )
        self._owners[number] = request["id"]
        pid = self._running[number].pid
        return {"number": number, "pid": pid, **{name: str(path) for name, path in paths.items()}}

    def release(self, request: dict[str, Any]) -> dict[str, Any]:
        """Kill what was started by requests whose id has this prefix: their sender is gone."""
        for number, owner in list(self._owners.items()):
            process = self._running[number]
            if owner.startswith(request["prefix"]) and process.poll() is None:
                end_group(process.pid, signal.SIGKILL)
                process.wait()
        return {}

    def wait(self, request: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end at most `limit_s` (0 asks at once); `rc` is null if it still runs."""
        try:
            return {"rc": self._running[request["number"]].wait(request["limit_s"])}
        except subprocess.TimeoutExpired:
            return {"rc": None}

    def kill(self, request: dict[str, Any]) -> dict[str, Any]:
        """Signal the command, or its whole process group."""
        process = self._running[request["number"]]
        if request["group"]:
            end_group(process.pid, request["signal"])
        else:
            process.send_signal(request["signal"])
        return {}

    def feed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write to the command's standard input; null data closes it."""
        stdin = self._running[request["number"]].stdin
        if stdin is None:
            raise ValueError("this command was started without a standard input")
        if request["data"] is None:
            stdin.close()
        else:
            stdin.write(base64.b64decode(request["data"]))
            stdin.flush()
        return {}
