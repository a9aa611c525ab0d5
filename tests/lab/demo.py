# SPDX-License-Identifier: GPL-2.0-only
"""`make demo`: starts the demo (demo_run.py) and says in one line why it failed, if it did.

I/O: signals, stderr, build/demo.log. Exit codes: 0 done, 1 something failed, 69 no lab on this
machine or the guest was lost, 128 + N ended by signal N (130: Ctrl-C).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.lab.demo_failure import causes, explain

LOG = Path(__file__).resolve().parents[2] / "build" / "demo.log"
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """A signal asks the demo to end; everything that it started ends with it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> int:
    """Run the demo; the exit code is in the module's text."""
    for number in _ENDING:
        signal.signal(number, _end)
    threading.excepthook = _thread_failed
    try:
        # Imported here, so that a failed or interrupted import is reported in one line, too.
        from tests.lab import demo_run  # noqa: PLC0415

        demo_run.main(sys.argv[1:])
    except BaseException as error:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        return _failed(error)
    return 0


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    """A helper thread's failure is no news beside what the main thread makes of it."""
    _log(failed.exc_value)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise Ended(number)


def _failed(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    for each in causes(error):
        # Also where something else failed on the way out: a guest that is not there any more.
        if isinstance(each, Ended):
            name = "Ctrl-C" if each.number == signal.SIGINT else signal.Signals(each.number).name
            _say(f"demo: ended by {name}; try: make demo starts it again")
            return 128 + each.number
    failure = explain(error)
    details = f" (details: {os.path.relpath(LOG)})" if _log(error) else ""
    _say(f"demo: {failure.what}; try: {failure.next_step}{details}")
    return failure.code


def _say(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
        sys.stdout.flush()
    except OSError:
        # The reader is gone (`make demo | head`); the interpreter would report that again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _log(error: BaseException | None) -> bool:
    """Keep the traceback; False where it cannot be kept, e.g. on a full disk."""
    try:
        LOG.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
