# SPDX-License-Identifier: GPL-2.0-only
"""An honest client beside a hostile one:

    python -m tests.bench.hostile_honest FOLDER SECONDS SEED UID GID

I/O: the control socket. Asks for something twice a second, each time on a connection of its own, as
the command line does. The last line of its output is a JSON list: how each was served. UID 0
stays root.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from ebbgate.units import NS_PER_S
from tests.bench.hostile_attacker import SOCKET
from tests.bench.raw_control_client import RawControlClient

PERIOD_S = 0.5
TIMEOUT_S = 20.0
SET_FOR_NS = 10 * NS_PER_S
"""Longer than the daemon ever needs to write a knob: a `set` ends at its time, written or not."""
TURN = "turn"
"""A file of root's: locked shared for requests, and exclusively for comparing knobs."""
_Asked = tuple[str, dict[str, str | int]]
_ENFORCE: _Asked = ("mode", {"mode": "enforce"})
"""The volume goes on being tuned, whatever was restored before."""
ASKED: dict[int, tuple[_Asked, ...]] = {
    0: (_ENFORCE, ("release", {"knob": "writeback_percent"})),
    1: (_ENFORCE, ("set", {"knob": "sequential_cutoff", "value": "8MiB", "for_ns": SET_FOR_NS})),
}
"""By who asks: root, or another."""


@dataclass(slots=True)
class ServedRequest:
    """How long one request took, in ms, from before the connection. `why`: what is wrong."""

    answered_ms: float = 0.0
    """Accepted or refused."""
    outcome_ms: float = 0.0
    why: str = ""


def once(socket: Path, kind: str, args: dict[str, str | int]) -> ServedRequest:
    """One request."""
    began_s, served = time.monotonic(), ServedRequest()

    def took_ms() -> float:
        return (time.monotonic() - began_s) * 1000

    try:
        with RawControlClient(socket, TIMEOUT_S) as line:
            greeting = line.receive()
            line.request(kind, "bcache0", args)
            answer = line.receive()
            served.answered_ms = took_ms()
            if answer.get("state") == "accepted":
                answer = line.receive()
            if answer.get("state") != "done":
                served.why = f"{kind}: {greeting} {answer}"
    except (OSError, ValueError) as error:
        served.why = f"{kind}: {type(error).__name__}: {error}"
    served.outcome_ms = took_ms()
    served.answered_ms = served.answered_ms or served.outcome_ms
    return served


def main() -> None:
    """Until the time is over. Nothing is asked while the scenario restores or has no daemon."""
    folder, seconds, seed, uid, gid = sys.argv[1:]
    with (Path(folder) / TURN).open("rb") as turn:
        if int(uid):
            os.setgroups([])
            os.setresgid(int(gid), int(gid), int(gid))
            os.setresuid(int(uid), int(uid), int(uid))
        socket, random = Path(folder) / SOCKET, Random(f"{seed} {uid}")
        until_s = time.monotonic() + float(seconds)
        served: list[ServedRequest] = []
        while time.monotonic() < until_s and os.getppid() != 1:
            fcntl.flock(turn, fcntl.LOCK_SH)
            found = once(socket, *random.choice(ASKED[min(int(uid), 1)]))
            fcntl.flock(turn, fcntl.LOCK_UN)
            served.append(found)
            if found.why:
                print(f"{uid}: {found.outcome_ms:.0f} ms: {found.why}", flush=True)
            time.sleep(PERIOD_S)
    print(json.dumps([asdict(found) for found in served]))


if __name__ == "__main__":
    main()
