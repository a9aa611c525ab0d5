# SPDX-License-Identifier: GPL-2.0-only
"""systemd-both: the service as `make install` sets it up, under a real systemd, on a bcache and a
dm-cache volume at once: start, tune, stop, kill, hang, restore unit; each knob of both comes back.

I/O: a guest of its own, with systemd as process 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from ebbgate.log_messages.message import LogMessage
from ebbgate.log_messages.service import DAEMON_READY, DAEMON_STOPPED, WEB_LISTENING
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.service_harness import (
    GRACE_S,
    OWNERS,
    UNIT,
    WEB,
    Both,
    answer,
    hang,
    install,
    loaded_volumes,
    show,
    start_tuning,
)
from tests.lab.session import Session
from tests.lab.wait import wait_until

SETTINGS = "/etc/ebbgate/ebbgate.toml"
RESTORE = "ebbgate-restore.service"
DROP_IN = f"/run/systemd/system/{UNIT}.d/lab.conf"


@pytest.fixture(scope="module")
def machine() -> Iterator[Session]:
    """A guest with systemd in which ebbgate is installed."""
    try:
        with Guest(systemd=True) as session:
            install(session)
            yield session
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture(scope="module")
def volumes(machine: Session) -> Iterator[Both]:
    """Leaving them compares every knob again."""
    with loaded_volumes(machine) as made:
        yield made


@pytest.fixture
def both(machine: Session, volumes: Both) -> Iterator[Both]:
    """The volumes with the service stopped before and after."""
    machine.run(f"systemctl reset-failed {UNIT}")
    yield volumes
    machine.check(f"systemctl stop {UNIT}", timeout_s=60)


@contextmanager
def drop_in(machine: Session, text: str) -> Iterator[None]:
    """The unit with some of its lines changed."""
    machine.put_file(DROP_IN, f"[Service]\n{text}\n")
    machine.check("systemctl daemon-reload", timeout_s=60)
    try:
        yield
    finally:
        machine.run(f"rm -f {DROP_IN} && systemctl daemon-reload", timeout_s=60)


def logged(machine: Session, unit: str, message: LogMessage) -> dict[str, str]:
    """Return the last entry of a message in the journal."""
    argv = f"journalctl -u {unit} -o json -n 1 MESSAGE_ID={message.id}"
    found: dict[str, str] = json.loads(machine.check(argv, timeout_s=60) or "{}")
    return found


@pytest.mark.full
def test_the_web_service_logs_to_the_journal(machine: Session) -> None:
    machine.check(f"systemctl start {WEB}", timeout_s=120)
    assert_logged(machine, WEB, WEB_LISTENING)
    machine.check(f"systemctl stop {WEB}", timeout_s=60)


def assert_logged(machine: Session, unit: str, message: LogMessage) -> None:
    entry = wait_until(partial(logged, machine, unit, message), 60, f"{unit} to say so")
    assert entry["SYSLOG_IDENTIFIER"] == unit.removesuffix(".service")
    assert (entry["PRIORITY"], entry["_TRANSPORT"]) == ("6", "journal")


def assert_explained(machine: Session, message: LogMessage) -> None:
    """Check that the journal knows what a message means."""
    machine.check("journalctl --update-catalog", timeout_s=60)
    argv = f"journalctl -x -u {UNIT} MESSAGE_ID={message.id}"
    text = machine.check(argv, timeout_s=60)
    assert f"Subject: {message.title}" in text
    assert message.meaning in " ".join(text.replace("░░", "").split())


def test_the_service_tunes_both_kinds_and_a_stop_restores(machine: Session, both: Both) -> None:
    start_tuning(both)
    assert show(machine, "ActiveState") == "active"
    status = machine.check("ebbgate status", timeout_s=60)
    assert "cannot query device-mapper" not in status
    owners = machine.check(["stat", "-c", "%n %a %U:%G", *OWNERS]).splitlines()
    assert dict(line.split(" ", 1) for line in owners) == OWNERS
    group = "/sys/fs/cgroup" + show(machine, "ControlGroup")
    peak, limit = int(machine.read(f"{group}/memory.peak")), int(show(machine, "MemoryMax"))
    # A margin is left, though what the kernel caches for it counts, too.
    assert peak < limit * 3 / 4, f"{peak >> 20} of {limit >> 20} MiB"
    machine.check(f"systemctl stop {UNIT}", timeout_s=60)
    assert both.changed() == {}
    assert show(machine, "Result") == "success"
    assert_logged(machine, UNIT, DAEMON_READY)
    assert_explained(machine, DAEMON_STOPPED)


def test_a_daemon_that_hangs_is_killed_and_its_knobs_come_back(both: Both) -> None:
    start_tuning(both)
    hang(both)


@pytest.mark.full
def test_a_daemon_that_is_killed_leaves_no_knob(machine: Session, both: Both) -> None:
    start_tuning(both)
    machine.check(f"kill -KILL {show(machine, 'MainPID')}")
    both.wait_until_back(GRACE_S)


def test_the_restore_unit_restores_where_the_service_could_not(
    machine: Session, both: Both
) -> None:
    with drop_in(machine, "ExecStopPost=\nRestart=no"):
        start_tuning(both)
        machine.check(f"kill -KILL {show(machine, 'MainPID')}")
        both.wait_until_back(GRACE_S)
        assert show(machine, "ExecMainStatus", RESTORE) == "0"
        assert show(machine, "ExecMainExitTimestampMonotonic", RESTORE) != "0"


@pytest.mark.full
def test_settings_with_an_error_keep_no_knob_and_end_the_service(
    machine: Session, both: Both
) -> None:
    start_tuning(both)
    assert machine.run(f"ls {SETTINGS}").rc != 0
    machine.put_file(SETTINGS, "newer_key = 1\n")
    try:
        machine.check(f"kill -KILL {show(machine, 'MainPID')}")
        both.wait_until_back(GRACE_S)
        wait_until(lambda: show(machine, "ActiveState") == "failed", 60, "the service to end")
        assert (show(machine, "ExecMainStatus"), show(machine, "NRestarts")) == ("78", "1")
    finally:
        machine.check(f"rm {SETTINGS}")


@pytest.mark.full
def test_a_service_without_device_mapper_access_reports_it(machine: Session, both: Both) -> None:
    with drop_in(machine, "DeviceAllow="):
        machine.check(f"systemctl start {UNIT}", timeout_s=120)
        for command in ("status", "doctor"):
            said = " ".join(machine.check(f"ebbgate {command}", timeout_s=60).split())
            assert "ebbgated cannot query device-mapper" in said
            assert "systemctl restart ebbgated" in said


@pytest.mark.full
def test_the_service_may_load_the_table_of_a_cleaning(machine: Session, both: Both) -> None:
    start_tuning(both)
    name = both.dm.lvm_name
    machine.check(f"ebbgate --patience 40 clean {name} --within 3min --yes", timeout_s=90)
    wait_until(lambda: both.dm.dirty_bytes() == 0 or None, 90, "the volume to be clean")
    wait_until(lambda: both.dm.status().policy != "cleaner" or None, 20, "the old policy")


@pytest.mark.full
def test_the_dashboard_reads_and_asks_without_being_root(machine: Session, both: Both) -> None:
    start_tuning(both)
    machine.check(f"systemctl start {WEB}", timeout_s=120)
    try:
        health = wait_until(lambda: answer(machine, "health"), 120, "ebbgate-web to answer")
        assert (health["daemon"]["alive"], health["history"]["ok"]) == (True, True)
        pid = machine.check(f"systemctl show --value -p MainPID {WEB}").strip()
        assert machine.check(f"stat -c %U /proc/{pid}").strip() == "ebbgate"
        body = json.dumps(
            {"kind": "mode", "volume": both.bcache.volume, "args": {"mode": "advise"}}
        )
        asked = f"-H 'Content-Type: application/json' -d '{body}'"
        refused = answer(machine, "intents", asked)
        assert refused["error"]["code"] == "unauthorized"
        token = machine.check("ebbgate web-token").strip()
        made = answer(machine, "intents", f"{asked} -H 'Authorization: Bearer {token}'")
        both.enforced.discard(both.bcache.volume)
        wait_until(lambda: answer(machine, f"intents/{made['id']}")["ok"], 60, "the answer")
        wait_until(lambda: not both.bcache_tuned(), 60, "the knobs to be back")
        machine.check(f"systemctl stop {UNIT}", timeout_s=60)
        assert answer(machine, "health")["daemon"]["alive"] is False
        assert answer(machine, "decisions?limit=1")["decisions"]
    finally:
        machine.check(f"systemctl stop {WEB}", timeout_s=60)
