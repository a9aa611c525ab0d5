# SPDX-License-Identifier: GPL-2.0-only
"""The probe in a locked-down kernel. I/O: a guest of its own: a level stays until a reboot."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.lab.fio_compare import job
from tests.lab.guest import CHECKOUT, Guest
from tests.lab.probe import GuestProbe
from tests.lab.session import Completed, Session
from tests.probe_records import Difference

PROBE = CHECKOUT / "build" / "ebbgate-probe"
LEVEL = "/sys/kernel/security/lockdown"


@pytest.fixture
def machine() -> Iterator[Session]:
    """A guest in which the level can be raised."""
    try:
        with Guest() as session:
            session.run("mount -t securityfs securityfs /sys/kernel/security")
            yield session
    except NoLab as reason:
        without_lab(reason)


def doctor(machine: Session) -> Completed:
    options = f"PYTHONPATH={CHECKOUT}/controller EBBGATE_PROBE={PROBE}"
    return machine.run(f"{options} /usr/bin/python3 -m ebbgate doctor", timeout_s=120)


def assert_counts(machine: Session) -> None:
    """A volume is tracked, and its requests are counted with their paths."""
    with BcacheStack(machine) as stack, GuestProbe(machine, "--tick-ms", "100") as probe:
        probe.track(stack)
        before = probe.tick(stack.volume)
        fio.run(machine, job(stack, "randwrite", size="16m", io_size="400k"), seed=1)
        gained = Difference(before, probe.tick(stack.volume))
        assert gained("fg", "write", "ios") == 100
        assert gained("path", "write", "writeback", "ios") == 100
        stack.drain()


@pytest.mark.full
@pytest.mark.timeout(400)
def test_the_probe_runs_with_integrity_and_refuses_confidentiality_in_one_line(
    machine: Session,
) -> None:
    machine.write(LEVEL, "integrity")
    checked = machine.run([PROBE, "--check"], timeout_s=60).check()
    assert json.loads(checked.stdout)["signals"]["volume"] == "ok"
    assert "this kernel is locked down (lockdown=integrity)" in doctor(machine).stdout
    assert_counts(machine)
    machine.write(LEVEL, "confidentiality")
    checked = machine.run([PROBE, "--check"], timeout_s=60)
    wanted = "the kernel is locked down (lockdown=confidentiality), so BPF programs may not read"
    assert checked.rc == 69
    (line,) = checked.stderr.splitlines()
    assert wanted in line
    assert doctor(machine).stdout.count("locked down") == 1
