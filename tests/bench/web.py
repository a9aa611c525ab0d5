# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate-web in the guest, beside the daemon, reached from the host's loopback.

I/O: starts and stops two processes of the guest; HTTP.
"""

from __future__ import annotations

import json
import secrets
import socket
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.bench.product import FOLDERS, PYTHON
from tests.lab.errors import LabError
from tests.lab.guest import NETWORK_ADDRESS
from tests.lab.session import Process, Session
from tests.lab.wait import wait_until

PORT = 8380
"""In the guest; forward it (Guest, forwards)."""
TOKEN_FILE = "/run/ebbgate-web-token"
_RELAY = Path(__file__).resolve().parent / "guest" / "relay.py"
# To import all of it takes the emulator a dozen seconds, and more in a slow hour.
_START_S = 120.0
_ANSWER_S = 60.0


def free_port() -> int:
    """A free port of the host's loopback: PORT itself if it can be."""
    for port in (PORT, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise LabError("no port of the loopback is free")


class Web:
    """A context manager. `port`: of the host, which leads to PORT of the guest; `site`: the
    package as it is staged (product.stage), with the built pages.
    """

    def __init__(self, session: Session, site: Path, port: int) -> None:
        self._session = session
        self._site = site
        self._processes: list[Process] = []
        self.url = f"http://127.0.0.1:{port}"
        self.token = secrets.token_urlsafe(24)

    def __enter__(self) -> Self:
        self._session.put_file(TOKEN_FILE, self.token)
        self.start()
        relay = [PYTHON, str(_RELAY), f"{NETWORK_ADDRESS}:{PORT}", f"127.0.0.1:{PORT}"]
        self._processes.append(self._session.spawn(relay))
        wait_until(self._answers, _START_S, f"ebbgate-web at {self.url}")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait(30)

    def start(self) -> None:
        """Start ebbgate-web; the relay finds it."""
        # Behind everything that is measured.
        argv = ["nice", "-n", "10", PYTHON, "-m", "ebbgate.web", "--as-root"]
        argv += FOLDERS
        argv += ["--listen", f"127.0.0.1:{PORT}", "--token-file", TOKEN_FILE]
        self._processes.insert(0, self._session.spawn(argv, env={"PYTHONPATH": str(self._site)}))

    def kill(self) -> None:
        """End it at once, as a crash would."""
        process = self._processes.pop(0)
        process.kill(9)
        process.wait(30)

    def get(self, path: str) -> Any:
        """The JSON document at a path."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=_ANSWER_S) as answer:
            return json.load(answer)

    def _answers(self) -> bool:
        log = self._processes[0]
        if log.poll() is not None:
            raise RuntimeError(f"ebbgate-web ended:\n{log.stderr()[-2000:]}")
        with suppress(OSError, ValueError):
            return bool(self.get("/api/v1/health"))
        return False
