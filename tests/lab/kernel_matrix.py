# SPDX-License-Identifier: GPL-2.0-only
"""Which tests run on which kernels, and what a kernel without the types of its modules may lack.

I/O: the guest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import pytest

from tests.lab.kernel import DEFAULT_RELEASE, RELEASES, chosen
from tests.lab.kernel_results import FAILED, PASSED
from tests.lab.probe import PROBE
from tests.lab.session import Session

HONEST_NO = "this kernel cannot: "
"""Begins the reason of a test that is skipped because the probe says so."""
OK, LIMITED, MISSING = "ok", "ok, but ", "missing: "

_MODULES = "modprobe -a bcache dm-cache dm-cache-smq dm-writecache"
_MODULE_TYPES = "/sys/kernel/btf/bcache"
_ORDER = [DEFAULT_RELEASE, *(name for name in RELEASES if name != DEFAULT_RELEASE)]


def on_kernels(suite: str, *quick: str) -> pytest.MarkDecorator:
    """Mark tests that run on every kernel: on the default one and `quick` always, else in `full`.

    suite: what they prove together, a row of the table in packaging/README.md.
    """
    return pytest.mark.kernels(suite, *quick)


def parameters(marker: pytest.Mark) -> list[object]:
    """Values for the fixture `guest`: None is the kernel that all other tests boot."""
    if os.environ.get("EBBGATE_LAB_GUEST") or os.environ.get("EBBGATE_LAB_KERNEL"):
        return [pytest.param(None, id=chosen())]
    quick = marker.args[1:]
    others = (
        pytest.param(name, marks=() if name in quick else pytest.mark.full) for name in _ORDER[1:]
    )
    return [pytest.param(None, id=DEFAULT_RELEASE), *others]


def put_in_order(items: list[pytest.Item], before: Sequence[pytest.Item]) -> None:
    """Sort by kernel, so that each is booted once, the default one first.

    before: as the files have them. pytest moves a file's tests of several kernels before its
    others, which is undone.
    """
    place = {item: number for number, item in enumerate(before)}
    file_place = {item.path: place[item] for item in reversed(before)}
    mixed = {item.path for item in before if item.get_closest_marker("kernels")}
    moved = {
        item: place[item] if item.path in mixed else number for number, item in enumerate(items)
    }
    items.sort(key=lambda item: (_kernel_number(item), file_place[item.path], moved[item]))


def _kernel_number(item: pytest.Item) -> int:
    callspec = getattr(item, "callspec", None)
    release = callspec.params.get("guest") if callspec is not None else None
    return _ORDER.index(release or DEFAULT_RELEASE)


def outcome(report: pytest.TestReport) -> str | None:
    """What a phase of a test says about its kernel; None if nothing."""
    if report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        return why.partition(HONEST_NO)[2] or None
    if report.failed:
        return FAILED
    return PASSED if report.when == "call" else None


def check(guest: Session) -> dict[str, str]:
    """Ask the probe what it can do here; one answer for all signals if it cannot start."""
    guest.check(_MODULES)
    done = guest.run([PROBE, "--check"])
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            return dict(json.loads(line)["signals"])
    lines = done.stderr.splitlines()
    said = next((line for line in reversed(lines) if MISSING in line), done.stderr.strip())
    return {"all": said.removeprefix("ebbgate-probe: ")}


def has_module_types(guest: Session) -> bool:
    """Whether the kernel describes the types of its modules, as all have from 5.11 on."""
    guest.check(_MODULES)
    return guest.resolve(_MODULE_TYPES) is not None


def needs(guest: Session, *signals: str, limits: bool = True) -> None:
    """Skip if the kernel lacks the types of its modules and the probe says what that costs.

    With these types nothing is excused: a test then fails for what is missing.
    limits: a signal will do that is given "ok, but" with a limit.
    """
    if has_module_types(guest):
        return
    said = check(guest)
    for text in (said.get("all") or said.get(name, OK) for name in signals):
        if text != OK and not (limits and text.startswith(LIMITED)):
            pytest.skip(HONEST_NO + text.removeprefix(MISSING).removeprefix(LIMITED))
