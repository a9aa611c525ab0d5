# SPDX-License-Identifier: GPL-2.0-only
"""An honest client beside a hostile one:

    python -m tests.bench.hostile_honest FOLDER SECONDS SEED UID GID

I/O: the control socket. Asks for something twice a second, each time on a connection of its own, as
the command line does. The last line of its output is a JSON object: how long each took, in ms,
and how many had no answer. UID 0 stays root.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path
from random import Random

from tests.bench.control_line import ControlLine
from tests.bench.hostile_attacker import SOCKET

PERIOD_S = 0.5
TIMEOUT_S = 20.0
SLOW_MS = 900.0
"""From here on the steps of a request are printed."""
TURN = "turn"
"""A file of root's: locked, shared, by whoever asks, and as a whole by whoever compares knobs."""
_Asked = tuple[str, dict[str, str | int]]
_ENFORCE: _Asked = ("mode", {"mode": "enforce"})
"""The volume goes on being tuned, whatever was restored before."""
ASKED: dict[int, tuple[_Asked, ...]] = {
    0: (_ENFORCE, ("release", {"knob": "writeback_percent"})),
    1: (_ENFORCE, ("set", {"knob": "sequential_cutoff", "value": "8MiB", "for_ns": 10**9})),
}
"""By who asks: root, or another."""


def once(socket: Path, kind: str, args: dict[str, str | int]) -> tuple[float, str]:
    """One request: how long it took in ms, and what is wrong with the answer."""
    began_s = time.monotonic()
    steps: list[str] = []

    def step(name: str) -> float:
        took_ms = (time.monotonic() - began_s) * 1000
        steps.append(f"{name} after {took_ms:.0f} ms")
        return took_ms

    try:
        with ControlLine(socket, TIMEOUT_S) as line:
            step("connected")
            greeting = line.receive()
            step("greeted")
            if "pid" not in greeting:
                return step(""), f"greeted with {greeting}"
            line.request(kind, "bcache0", args)
            while (answer := line.receive()).get("state") == "accepted":
                step("accepted")
    except (OSError, ValueError) as error:
        return step("failed"), f"{kind}: {type(error).__name__}: {error}"
    took_ms = step("answered")
    if took_ms > SLOW_MS:
        print(f"slow: {kind}: {', '.join(steps)}", flush=True)
    return took_ms, "" if answer.get("state") == "done" else f"{kind}: {answer}"


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
        took_ms, failed = [], 0
        while time.monotonic() < until_s and os.getppid() != 1:
            fcntl.flock(turn, fcntl.LOCK_SH)
            took, why = once(socket, *random.choice(ASKED[min(int(uid), 1)]))
            fcntl.flock(turn, fcntl.LOCK_UN)
            took_ms.append(took)
            if why:
                failed += 1
                print(f"{uid}: {took:.0f} ms: {why}", flush=True)
            time.sleep(PERIOD_S)
    print(json.dumps({"took_ms": took_ms, "failed": failed}))


if __name__ == "__main__":
    main()
