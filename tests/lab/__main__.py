# SPDX-License-Identifier: GPL-2.0-only
"""The lab for people: a stock kernel with a bcache volume, and a shell in it.

    python3 -m tests.lab shell            boot, make a bcache volume, give a shell, end
    python3 -m tests.lab run CMD...       the same for one command (one word: a shell's line)
    python3 -m tests.lab up               boot a guest that stays; shell, run and tests then use it
    python3 -m tests.lab status | down    whether it is there; end it
    python3 -m tests.lab kernel           fetch the kernel into the cache and say where it is

EBBGATE_LAB_KERNEL is the kernel to boot: bullseye, bookworm (the default), trixie or newest.

I/O: everything the lab does.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab import guest_server, kernel, terminal
from tests.lab.bcache_stack import BcacheStack
from tests.lab.errors import EXIT_LOST_GUEST, LabError, LostGuest
from tests.lab.guest import Guest
from tests.lab.session import Session


def main(arguments: list[str] | None = None) -> int:
    """Exit code: the command's own; 69 if the guest was lost; 1 for any other failure."""
    options = _parser().parse_args(arguments)
    try:
        return _act(options)
    except LostGuest as error:
        print(f"lab: guest lost: {error}", file=sys.stderr)
        return EXIT_LOST_GUEST
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.lab", description="see tests/lab/README.md"
    )
    parser.add_argument("action", choices=["shell", "run", "up", "down", "status", "kernel"])
    parser.add_argument("command", nargs=argparse.REMAINDER, help="for run: the command")
    parser.add_argument("--name", default=guest_server.DEFAULT_NAME, help="of the guest that stays")
    parser.add_argument("--scheduler", default="mq-deadline", help="of the HDD (none, bfq)")
    parser.add_argument("--mode", default="writeback", help="cache mode")
    parser.add_argument("--bare", action="store_true", help="boot only, make no bcache volume")
    parser.add_argument("--timeout", type=float, default=600, help="for run: seconds")
    return parser


def _act(options: argparse.Namespace) -> int:
    match options.action:
        case "kernel":
            print(kernel.fetch(kernel.chosen()).root)
        case "up":
            mode, scheduler = options.mode, options.scheduler
            guest_server.bring_up(options.name, scheduler, mode, with_stack=not options.bare)
            print(f"guest {options.name} is up; next: python3 -m tests.lab shell, run, down")
        case "down":
            guest_server.take_down(options.name)
        case "status":
            up = guest_server.is_up(options.name)
            print(f"guest {options.name} is {'up' if up else 'not running'}")
            return 0 if up else 1
        case _:
            with _session(options) as session:
                return _use(session, options)
    return 0


@contextmanager
def _session(options: argparse.Namespace) -> Iterator[Session]:
    """The guest that stays, if it is there, or one for this command alone."""
    if guest_server.is_up(options.name):
        with contextlib.closing(guest_server.attach(options.name)) as session:
            yield session
        return
    with Guest() as guest:
        if not options.bare:
            # Not left with its checks: what a person does to the knobs here is his affair.
            stack = BcacheStack(guest, scheduler=options.scheduler, cache_mode=options.mode)
            stack.__enter__()
        yield guest


def _use(session: Session, options: argparse.Namespace) -> int:
    if options.action == "shell":
        return terminal.interact(session, ["bash", "-l"])
    words = options.command
    done = session.run(words[0] if len(words) == 1 else words, timeout_s=options.timeout)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    # A signal's number, as a shell would have it.
    return done.rc if done.rc >= 0 else 128 - done.rc


if __name__ == "__main__":
    sys.exit(main())
