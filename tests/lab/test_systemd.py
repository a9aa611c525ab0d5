# SPDX-License-Identifier: GPL-2.0-only
"""The service as `make install` sets it up, under a real systemd: start, hang, crash, stop.

I/O: a guest of its own, with systemd as process 1.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import fio, host
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.lab.guest import CHECKOUT, Guest
from tests.lab.session import Session
from tests.lab.stack import BcacheStack
from tests.lab.wait import wait_until

pytestmark = pytest.mark.full

UNIT = "ebbgated.service"
WEB = "ebbgate-web.service"
API = "http://127.0.0.1:8380/api/v1"
WATCHDOG_S = 10
# systemd's own notice, the kill, and a restore under emulation.
GRACE_S = 15


@pytest.fixture(scope="module")
def machine() -> Iterator[Session]:
    """A guest with systemd in which ebbgate is installed."""
    try:
        with Guest(systemd=True) as session:
            host.run(["make", "-s", "install", f"DESTDIR={session.share}/installed"], cwd=CHECKOUT)
            session.check(f"cp -a {session.share}/installed/usr/local/. /usr/local/")
            # The user of the dashboard, its token, and the group's way into the daemon's files.
            session.check(f"make -s -C {CHECKOUT} install-group", timeout_s=120)
            session.check("systemctl daemon-reload")
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture
def stack(machine: Session) -> Iterator[BcacheStack]:
    with BcacheStack(machine) as made:
        made.expect_changed("writeback_rate")
        yield made
        machine.check(f"systemctl stop {UNIT}", timeout_s=60)


def show(machine: Session, field: str) -> str:
    return machine.check(f"systemctl show --value -p {field} {UNIT}").strip()


def tuned(stack: BcacheStack) -> bool:
    return bool(set(stack.changed_knobs()) - {"writeback_rate"})


def start_tuning(machine: Session, stack: BcacheStack) -> None:
    """The service runs and has changed knobs."""
    machine.check(f"systemctl start {UNIT}", timeout_s=120)
    machine.check(f"ebbgate enforce {stack.volume}", timeout_s=60)
    dirty = fio.Job(stack.device, "randwrite", "64k", options={"io_size": "32m"})
    fio.run(machine, dirty, seed=1)
    wait_until(lambda: tuned(stack), 60, "knobs to be tuned")


def test_the_service_starts_and_a_stop_restores(machine: Session, stack: BcacheStack) -> None:
    start_tuning(machine, stack)
    assert show(machine, "ActiveState") == "active"
    machine.check(f"systemctl stop {UNIT}", timeout_s=60)
    assert not tuned(stack)
    assert show(machine, "Result") == "success"


def test_a_daemon_that_hangs_is_killed_and_its_knobs_come_back(
    machine: Session, stack: BcacheStack
) -> None:
    start_tuning(machine, stack)
    pid = show(machine, "MainPID")
    machine.check(f"kill -STOP {pid}")
    stopped_s = time.monotonic()
    limit_s = WATCHDOG_S + GRACE_S
    wait_until(lambda: show(machine, "Result") == "watchdog", limit_s, "the watchdog to bite")
    wait_until(lambda: not tuned(stack), limit_s, "the knobs to be back")
    assert time.monotonic() - stopped_s < limit_s
    # And the next daemon goes on where this one hung: the mode was a person's wish.
    wait_until(lambda: show(machine, "MainPID") not in ("0", pid), 30, "a new daemon")
    wait_until(lambda: tuned(stack), 60, "the new daemon to tune")


def test_a_daemon_that_is_killed_leaves_no_knob(machine: Session, stack: BcacheStack) -> None:
    start_tuning(machine, stack)
    machine.check(f"kill -KILL {show(machine, 'MainPID')}")
    wait_until(lambda: not tuned(stack), GRACE_S, "the knobs to be back")


def answer(machine: Session, path: str, options: str = "") -> Any:
    """What the dashboard's server answers; None while it does not."""
    done = machine.run(f"curl -sS --max-time 60 {options} {API}/{path}", timeout_s=90)
    return json.loads(done.stdout) if done.rc == 0 else None


def test_the_dashboard_reads_and_asks_without_being_root(
    machine: Session, stack: BcacheStack
) -> None:
    start_tuning(machine, stack)
    machine.check(f"systemctl start {WEB}", timeout_s=120)
    try:
        health = wait_until(lambda: answer(machine, "health"), 120, "ebbgate-web to answer")
        assert (health["daemon"]["alive"], health["history"]["ok"]) == (True, True)
        pid = machine.check(f"systemctl show --value -p MainPID {WEB}").strip()
        assert machine.check(f"stat -c %U /proc/{pid}").strip() == "ebbgate"
        wish = json.dumps({"kind": "mode", "volume": stack.volume, "args": {"mode": "advise"}})
        asked = f"-H 'Content-Type: application/json' -d '{wish}'"
        refused = answer(machine, "intents", asked)
        assert refused["error"]["code"] == "unauthorized"
        token = machine.check("ebbgate web-token").strip()
        made = answer(machine, "intents", f"{asked} -H 'Authorization: Bearer {token}'")
        wait_until(lambda: answer(machine, f"intents/{made['id']}")["ok"], 60, "the wish's answer")
        wait_until(lambda: not tuned(stack), 60, "the knobs to be back")
        machine.check(f"systemctl stop {UNIT}", timeout_s=60)
        assert answer(machine, "health")["daemon"]["alive"] is False
        assert answer(machine, "decisions?limit=1")["decisions"]
    finally:
        machine.check(f"systemctl stop {WEB}", timeout_s=60)
