# SPDX-License-Identifier: GPL-2.0-only
"""A device-mapper that cannot be queried is reported with the reason and the next step."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ebbgate.doctor import unprivileged
from ebbgate.doctor.unprivileged import FreshStatus
from ebbgate.kernel.device_mapper import DeviceMapper
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.status import DaemonStatus, ProbeStatus
from ebbgate.model.volume import Mode
from ebbgate.store.queries import TimedStatus
from ebbgate.web import convert
from ebbgate.web.models.live import Availability
from tests.fake_dm import FakeDm
from tests.fake_sysfs import fake_bcache
from tests.unit.conftest import NOW_NS, Cli
from tests.unit.daemon.test_volume_set import VolumeSetHarness

MISSING = "/dev/mapper/control is missing"
ASKS = "ebbgated cannot query device-mapper"


class Refusing(DeviceMapper):
    """Its control device opens; the kernel refuses every call."""

    def __init__(self, number: int, control: Path) -> None:
        super().__init__(control)
        self.number = number

    def names(self) -> tuple[str, ...]:
        raise OSError(self.number, os.strerror(self.number))


@pytest.fixture
def loaded(tmp_path: Path) -> Path:
    made = tmp_path / "device-mapper"
    made.mkdir()
    return made


def test_a_hidden_node_is_not_a_kernel_without_device_mapper(tmp_path: Path, loaded: Path) -> None:
    control = tmp_path / "control"
    assert DeviceMapper(control, loaded).blocked() == f"{control} is missing"
    assert DeviceMapper(control, tmp_path / "not-loaded").blocked() == ""


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EPERM, "device rules do not allow"),
        (errno.EACCES, "only root may open"),
        (errno.EMFILE, "cannot be opened"),
        (errno.ENODEV, ""),
        (errno.ENXIO, ""),
    ],
)
def test_a_node_that_cannot_be_opened_is_reported_with_the_reason(
    tmp_path: Path, loaded: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    why = DeviceMapper(tmp_path / "control", loaded).blocked()
    assert said in why
    assert bool(why) == bool(said)


@pytest.mark.parametrize(
    ("number", "said"), [(errno.EACCES, "CAP_SYS_ADMIN"), (errno.ENOMEM, "Cannot allocate memory")]
)
def test_refused_calls_are_reported_with_the_reason(tmp_path: Path, number: int, said: str) -> None:
    control = tmp_path / "control"
    control.touch()
    assert said in Refusing(number, control).blocked()


def test_status_and_doctor_say_what_the_daemon_cannot_ask(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("", {"version": "0.1.0", "device_mapper": MISSING}, NOW_NS)
        for command in ("status", "doctor"):
            out = " ".join(cli(command).out.split())
            assert f"{ASKS} ({MISSING})" in out
            assert "systemctl restart ebbgated" in out


def test_a_command_without_rights_names_the_next_step(cli: Cli) -> None:
    cli.euid = 1000
    cli.fake.sysfs = Sysfs(cli.fake.root, FakeDm(allowed=False))
    for command in ("status", "doctor"):
        out = " ".join(cli(command).out.split())
        assert "cannot query device-mapper (only root may open /dev/mapper/control)" in out
        assert "run this as root" in out


def test_the_web_reports_it_in_doctor_and_health(tmp_path: Path) -> None:
    status = DaemonStatus(device_mapper=MISSING, probe=ProbeStatus(state="running"))
    document = unprivileged.doctor(
        fake_bcache(tmp_path / "sys").sysfs, Path("/proc"), FreshStatus(status)
    )
    assert any(ASKS in line for line in document["missing"])
    works = Availability(ok=True, why=None)
    health = convert.health(TimedStatus(NOW_NS, status), 1, True, works, works, NOW_NS)
    assert any(ASKS in line for line in health.daemon.errors)


def test_the_daemon_logs_it_once_and_publishes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = VolumeSetHarness(tmp_path, Mode.ADVISE)
    published: list[DaemonStatus] = []
    monkeypatch.setattr(harness.recorder, "live", lambda _, status: published.append(status))
    harness.daemon.volume_set.sysfs = Sysfs(harness.sysfs.root, FakeDm(allowed=False))
    try:
        for _ in range(2):
            asyncio.run(harness.daemon.volume_set.discover())
        harness.daemon.send_status()
    finally:
        harness.stop()
    assert caplog.text.count("device-mapper cannot be queried (only root may open") == 1
    assert "only root may open" in (published[-1].device_mapper or "")
