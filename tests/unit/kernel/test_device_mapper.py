# SPDX-License-Identifier: GPL-2.0-only
"""The calls to device-mapper. I/O: none; the kernel is a list."""

from __future__ import annotations

import errno
import fcntl
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ebbgate.kernel.device_mapper import DeviceMapper, Target
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.knobs.places import dm_reference
from tests.builders import dm_volume

READ_ONLY = 1
BUFFER_FULL = 1 << 8
SUSPENDED = 1 << 1
DEV_SUSPEND, DEV_STATUS, TABLE_LOAD, TABLE_CLEAR = 6, 7, 9, 10
_FLAGS = struct.Struct("=I")
_FLAGS_AT = 7 * 4
"""In struct dm_ioctl: version (3), data_size, data_start, target_count, open_count, flags."""
_NAME_AT, _UUID_AT = 48, 48 + 128


@dataclass(slots=True)
class Kernel:
    """Records each call: number, flags, name, uuid. `flags`: what it answers; `needs_bytes`: the
    room that its answer takes; `fails`: the call that fails so many `times`, and leaves the device
    suspended.
    """

    flags: int = 0
    needs_bytes: int = 0
    fails: int = 0
    times: int = 1
    calls: list[tuple[int, int, bytes, bytes]] = field(default_factory=list)

    def __call__(self, handle: int, number: int, buffer: bytearray) -> int:
        (flags,) = _FLAGS.unpack_from(buffer, _FLAGS_AT)
        name, uuid = (bytes(buffer[at : at + 128]).rstrip(b"\0") for at in (_NAME_AT, _UUID_AT))
        self.calls.append((number & 0xFF, flags, name, uuid))
        if number & 0xFF == self.fails and self.times:
            self.times, self.flags = self.times - 1, self.flags | SUSPENDED
            raise OSError(errno.EBUSY, "Device or resource busy")
        full = BUFFER_FULL if len(buffer) < self.needs_bytes else 0
        _FLAGS.pack_into(buffer, _FLAGS_AT, self.flags | full)
        return 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(fcntl, "ioctl", made)
    return made


@pytest.fixture
def dm(tmp_path: Path) -> DeviceMapper:
    control = tmp_path / "control"
    control.touch()
    return DeviceMapper(control)


@pytest.mark.parametrize("flags", [READ_ONLY, 0])
def test_a_table_of_a_read_only_device_is_loaded_read_only(
    kernel: Kernel, dm: DeviceMapper, flags: int
) -> None:
    kernel.flags = flags
    dm.reload("vg-data", (Target(0, 8, "linear", "8:0 0"),))
    assert [sent for number, sent, *_ in kernel.calls if number == TABLE_LOAD] == [flags]


@pytest.mark.parametrize("suspended_before", [False, True])
def test_a_device_that_a_failed_table_leaves_suspended_gets_the_old_one_back(
    kernel: Kernel, dm: DeviceMapper, suspended_before: bool
) -> None:
    """The kernel resumes with the new table, and if that fails with none (dm-ioctl.c)."""
    kernel.flags = SUSPENDED if suspended_before else 0
    kernel.fails = DEV_SUSPEND
    with pytest.raises(OSError, match="busy"):
        dm.reload("vg-data", (Target(0, 8, "linear", "8:0 0"),))
    after = [number for number, *_ in kernel.calls]
    tail = after[after.index(TABLE_LOAD) :]
    failed = [TABLE_LOAD, DEV_SUSPEND, TABLE_CLEAR]
    # Whoever had suspended it before resumes it.
    brought_back = [] if suspended_before else [DEV_STATUS, TABLE_LOAD, DEV_SUSPEND]
    assert tail == failed + brought_back


def test_a_device_that_stays_suspended_is_named(kernel: Kernel, dm: DeviceMapper) -> None:
    kernel.fails, kernel.times = DEV_SUSPEND, 2
    with pytest.raises(OSError, match="busy; vg-data is left suspended, and the kernel's log says"):
        dm.reload("vg-data", (Target(0, 8, "linear", "8:0 0"),))


@pytest.mark.parametrize(
    ("uuid", "name", "sent"), [("", "vg-data", b"vg-data"), ("LVM-abc", "", b"LVM-abc")]
)
def test_a_volume_is_named_by_its_uuid_where_it_has_one(
    kernel: Kernel, dm: DeviceMapper, uuid: str, name: str, sent: bytes
) -> None:
    found = dm_volume()
    assert found.mapping is not None
    mapping = replace(found.mapping, dm_name="vg-data", uuid=uuid)
    dm.device(dm_reference(replace(found, mapping=mapping)))
    assert kernel.calls[-1][2:] == ((b"", sent) if uuid else (sent, b""))


def test_a_long_answer_gets_more_room_up_to_a_limit(kernel: Kernel, dm: DeviceMapper) -> None:
    kernel.needs_bytes = 1 << 20
    dm.names()
    assert len(kernel.calls) == 4
    kernel.needs_bytes = 1 << 30
    with pytest.raises(OSError, match="too long"):
        dm.names()


def test_a_missing_control_device_is_an_error_and_not_a_missing_device(tmp_path: Path) -> None:
    sysfs = Sysfs(tmp_path, DeviceMapper(tmp_path / "none"))
    for call in (
        lambda: sysfs.read("dm:vg-data/migration_threshold"),
        lambda: sysfs.write_text("dm:vg-data/migration_threshold", "1"),
        lambda: sysfs.dm_device("dm:vg-data/migration_threshold"),
        sysfs.dm_names,
    ):
        with pytest.raises(OSError, match="cannot be queried") as caught:
            call()
        assert caught.value.errno not in (errno.ENOENT, errno.ENXIO)
