# SPDX-License-Identifier: GPL-2.0-only
"""The power state in what disks answer; the ioctl itself is tested on a real kernel."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.kernel import disk_power
from ebbgate.kernel.disk_power import of_ata_sense, of_request_sense
from ebbgate.model.power import PowerState

ACTIVE, IDLE, STANDBY, UNKNOWN = PowerState
# As libata answers (6.1): descriptor form, and the fixed form of 5.10 and of some SAS controllers.
DESCRIPTOR_FORM = "72 01 00 1d 00 00 00 0e 09 0c 00 00 00 {} 00 00 00 00 00 00 40 50"
FIXED_FORM = "70 00 01 00 50 40 {} 0a 00 00 00 00 00 1d 00 00 00 00"


def sense(form: str, count: int = 0) -> bytes:
    return bytes.fromhex(form.format(f"{count:02x}"))


@pytest.mark.parametrize("form", [DESCRIPTOR_FORM, FIXED_FORM])
@pytest.mark.parametrize(
    ("count", "state"),
    [
        (0x00, STANDBY),
        (0x01, STANDBY),
        (0x40, STANDBY),
        (0x41, ACTIVE),
        (0x80, IDLE),
        (0x81, IDLE),
        (0x82, IDLE),
        (0x83, IDLE),
        (0xFF, ACTIVE),
        (0x37, UNKNOWN),
    ],
)
def test_ata_power_modes_are_read_from_both_forms_of_sense_data(
    form: str, count: int, state: PowerState
) -> None:
    found = of_ata_sense(sense(form, count))
    assert found is not None
    assert (found.state, bool(found.why)) == (state, state is UNKNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "70 00 05 00 00 00 00 0a 00 00 00 00 20 00 00 00 00 00",
        "72 05 20 00 00 00 00 00",
        "72 01 00 1d 00 00 00 0e 09 0c 00 04 00 00 00 00 00 00 00 00 40 51",
        "72 01 00 1d 00 00 00 0e 09 0c 00",
    ],
    ids=["no sense", "illegal request", "illegal request, descriptor", "aborted", "cut off"],
)
def test_a_disk_that_takes_no_ata_command_gives_no_ata_state(text: str) -> None:
    assert of_ata_sense(bytes.fromhex(text)) is None


@pytest.mark.parametrize(
    ("key", "code", "qualifier", "state"),
    [
        (0, 0x5E, 0x01, IDLE),
        (0, 0x5E, 0x08, IDLE),
        (0, 0x5E, 0x02, STANDBY),
        (0, 0x5E, 0x0A, STANDBY),
        (0, 0x5E, 0x41, ACTIVE),
        (2, 0x04, 0x02, STANDBY),
        (0, 0x00, 0x00, None),
        (2, 0x04, 0x01, None),
        (0, 0x5E, 0x00, None),
    ],
)
def test_scsi_disks_report_only_low_power_and_stopped(
    key: int, code: int, qualifier: int, state: PowerState | None
) -> None:
    fixed = bytes((0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, code, qualifier, 0, 0, 0, 0))
    for data in (fixed, bytes((0x72, key, code, qualifier, 0, 0, 0, 0))):
        found = of_request_sense(data)
        assert (found and found.state) == state


@given(st.binary(max_size=64))
def test_any_answer_is_read_without_an_error(data: bytes) -> None:
    of_ata_sense(data)
    of_request_sense(data)


def test_a_node_that_is_no_disk_is_unknown_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "sda").write_bytes(b"")
    found = disk_power.ask(tmp_path / "sda")
    assert found.state is UNKNOWN
    assert "SG_IO failed" in found.why
    assert "No such file" in disk_power.ask(tmp_path / "sdb").why


def test_a_refused_command_says_what_the_unit_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    (tmp_path / "sda").write_bytes(b"")
    monkeypatch.setattr(disk_power, "ioctl", refuse)
    assert "CAP_SYS_RAWIO" in disk_power.ask(tmp_path / "sda").why
