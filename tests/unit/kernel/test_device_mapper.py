# SPDX-License-Identifier: GPL-2.0-only
"""What device-mapper is asked, call by call. I/O: none; the kernel is a list."""

from __future__ import annotations

import errno
import fcntl
import struct
from pathlib import Path

import pytest

from ebbgate.kernel import device_mapper as module
from ebbgate.kernel.device_mapper import DeviceMapper, Target
from ebbgate.kernel.sysfs import Sysfs

READ_ONLY = 1
_FLAGS = struct.Struct("=I")
_FLAGS_AT = 7 * 4
"""In struct dm_ioctl: version (3), data_size, data_start, target_count, open_count, flags."""


class Kernel:
    """Notes the number and the flags of each call. `read_only`: what it says of every device."""

    def __init__(self, *, read_only: bool) -> None:
        self.read_only = read_only
        self.calls: list[tuple[int, int]] = []

    def __call__(self, handle: int, number: int, buffer: bytearray) -> int:
        (flags,) = _FLAGS.unpack_from(buffer, _FLAGS_AT)
        self.calls.append((number & 0xFF, flags))
        _FLAGS.pack_into(buffer, _FLAGS_AT, READ_ONLY if self.read_only else 0)
        return 0


@pytest.mark.parametrize("read_only", [True, False])
def test_a_table_of_a_read_only_device_is_loaded_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    control = tmp_path / "control"
    control.touch()
    kernel = Kernel(read_only=read_only)
    monkeypatch.setattr(fcntl, "ioctl", kernel)
    DeviceMapper(control).reload("vg-data", (Target(0, 8, "linear", "8:0 0"),))
    loads = [flags for call, flags in kernel.calls if call == module._Call.TABLE_LOAD]
    assert loads == [READ_ONLY if read_only else 0]


def test_a_missing_control_device_is_an_error_and_no_absence(tmp_path: Path) -> None:
    sysfs = Sysfs(tmp_path, DeviceMapper(tmp_path / "none"))
    for call in (
        lambda: sysfs.read("dm:vg-data/migration_threshold"),
        lambda: sysfs.write_text("dm:vg-data/migration_threshold", "1"),
        lambda: sysfs.dm_device("dm:vg-data/migration_threshold"),
        sysfs.dm_names,
    ):
        with pytest.raises(OSError, match="cannot be asked") as caught:
            call()
        assert caught.value.errno not in (errno.ENOENT, errno.ENXIO)
