# SPDX-License-Identifier: GPL-2.0-only
"""The emulator that runs the guests: the machine's own if it is new enough, else a backport.

QEMU before 8.1 translates a guest's code without holding its page: when one CPU patches an
instruction while another translates it, the old translation stays for good. Linux patches its code
each time a tracepoint or a BPF program comes or goes, by way of a breakpoint; a breakpoint that
stays in a translation has every CPU that comes by trap for ever, with interrupts off. Debian 12's
7.2 hangs after some 30 switches of the block tracepoints under load, which is what the probe does
at each start (`test_code_may_be_patched_under_load` in test_harness.py).

I/O: apt (once), the cache folder.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
from pathlib import Path

from tests.lab import apt, downloads, host
from tests.lab.errors import CommandFailed, LabError, NoLab

PROGRAM = "qemu-system-x86_64"

_LOCKS_PAGES = (8, 1)
_PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios")
_VERSION = re.compile(r"version (\d+)\.(\d+)")


@functools.cache
def find() -> str:
    """Path of a QEMU that a guest may patch its code under.

    What the machine has if that is new enough; else the backport, from the cache if it is there;
    else what the machine has, with a warning. Raises NoLab if it has none.
    """
    host.need(PROGRAM)
    own = str(host.find(PROGRAM))
    if _version(own) >= _LOCKS_PAGES:
        return own
    try:
        return _backport()
    except LabError as error:
        why = str(error).partition("\n")[0]
        print(f"lab: guests may hang, {own} is older than 8.1: {why}", file=sys.stderr)
        return own


def _version(program: str) -> tuple[int, int]:
    said = host.run([program, "--version"])
    found = _VERSION.search(said)
    if not found:
        raise NoLab(f"no lab here: {program} does not say its version: {said}")
    return int(found[1]), int(found[2])


def _backport() -> str:
    """The backport's program, unpacked beside the kernels; it runs with the release's libraries."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    final = downloads.cache_dir() / "emulators" / release
    program = final / "usr" / "bin" / PROGRAM
    with downloads.locked(final.parent):
        if not program.exists():
            with downloads.made(final) as scratch:
                _download(f"{release}-backports", scratch)
    # Also shows whether it runs here at all.
    if _version(str(program)) < _LOCKS_PAGES:
        raise CommandFailed(f"{program} is too old")
    return str(program)


def _download(suite: str, scratch: Path) -> None:
    options = apt.suites([suite], scratch)
    apt.unpack([f"{name}/{suite}" for name in _PACKAGES], scratch, scratch / "root", options)
