# SPDX-License-Identifier: GPL-2.0-only
"""Device-mapper through its control device. I/O: ioctls on /dev/mapper/control.

The calls of dmsetup without a process for each: a status is read at every tick, and a gate must
close at once. Sizes and numbers from include/uapi/linux/dm-ioctl.h (interface 4.x, unchanged since
2.6).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable

CONTROL: Final = Path("/dev/mapper/control")
# There while the kernel has device-mapper loaded, whether or not this process sees its node.
LOADED: Final = Path("/sys/class/misc/device-mapper")
_VERSION: Final = (4, 0, 0)
# version[3], data_size, data_start, target_count, open_count, flags, event_nr, padding, dev, name,
# uuid, data
_HEAD: Final = struct.Struct("=10IQ128s129s7s")
_TARGET: Final = struct.Struct("=QQiI16s")
_ROW: Final = struct.Struct("=QI")
_SECTOR: Final = struct.Struct("=Q")
_BUFFER_BYTES: Final = 16 * 1024
_BUFFER_BYTES_MAX: Final = 4 << 20
_NAME_BYTES_MAX: Final = 127
_LINE_WORDS: Final = 4
UUID_REF: Final = "uuid="
TABLE: Final = "table"
_WITH_SETTINGS: Final = ("cache", "writecache")


class _Call(IntEnum):
    """Numbers of the commands."""

    LIST_DEVICES = 2
    DEV_SUSPEND = 6
    DEV_STATUS = 7
    TABLE_LOAD = 9
    TABLE_CLEAR = 10
    TABLE_STATUS = 12
    TARGET_MSG = 14


class _Flag(IntEnum):
    READ_ONLY = 1 << 0
    SUSPEND = 1 << 1
    STATUS_TABLE = 1 << 4
    ACTIVE_PRESENT = 1 << 5
    BUFFER_FULL = 1 << 8
    NO_FLUSH = 1 << 11


@dataclass(frozen=True, slots=True)
class DmDevice:
    """A mapped device. `uuid`: LVM's begin with `LVM-`; empty where the maker gave none."""

    name: str
    uuid: str
    devno: tuple[int, int]
    suspended: bool
    read_only: bool
    event_nr: int


@dataclass(frozen=True, slots=True)
class Target:
    """One line of a table or of a status; `params` without start, length and type. In sectors."""

    start_sectors: int
    length_sectors: int
    kind: str
    params: str


class DeviceMapper:
    """The kernel's device-mapper; every call opens nothing but the control device.

    `ref`: the name of a device, or `uuid=` and its uuid, which survives a renaming. Raises OSError
    with the kernel's errno: ENXIO for a device that is gone.
    """

    def __init__(self, control: Path = CONTROL, loaded: Path = LOADED) -> None:
        self._control = control
        self._loaded = loaded
        self._handle = -1

    def present(self) -> bool:
        """Is there a device-mapper in this kernel that this process may ask?"""
        return os.access(self._control, os.R_OK | os.W_OK)

    def blocked(self) -> str:
        """Why this process cannot ask the kernel's device-mapper; empty where it can, and where
        the kernel has none.
        """
        try:
            self._open()
        except Unavailable as error:
            return self._not_opened(error.__cause__)
        try:
            self.names()
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                return "this process lacks the capability CAP_SYS_ADMIN"
            return f"the kernel answers: {error.strerror}"
        return ""

    def _not_opened(self, error: BaseException | None) -> str:
        number = error.errno if isinstance(error, OSError) else None
        if number in (errno.ENODEV, errno.ENXIO, errno.ENOTDIR):
            return ""
        if number == errno.ENOENT:
            return f"{self._control} is missing" if self._loaded.exists() else ""
        if number == errno.EPERM:
            return f"the service manager's device rules do not allow {self._control}"
        if number == errno.EACCES:
            return f"only root may open {self._control}"
        return f"{self._control} cannot be opened: {error}"

    def names(self) -> tuple[str, ...]:
        """Every mapped device."""
        data = self._call(_Call.LIST_DEVICES)[1]
        return tuple(_names(data))

    def device(self, ref: str) -> DmDevice:
        """What a device is called and how it stands."""
        head, _ = self._call(_Call.DEV_STATUS, ref)
        return head

    def setting(self, ref: str, name: str) -> str | None:
        """What `read_setting` returns; None where it raises."""
        try:
            return self.read_setting(ref, name)
        except (OSError, Unavailable):
            return None

    def read_setting(self, ref: str, name: str) -> str:
        """The value behind a word of the status line. `table`: the live table, as `store` takes it.

        Raises OSError: ENXIO where the device is gone, ENOENT where it is no cache any more (LVM
        puts another device under the old name for a snapshot), EIO where a cache does not say.
        Raises Unavailable where device-mapper cannot be asked at all.
        """
        if name == TABLE:
            return "\n".join(_line(target) for target in self.table(ref))
        targets = self.status(ref)
        if not targets or targets[0].kind not in _WITH_SETTINGS:
            raise OSError(errno.ENOENT, "the device has no cache any more", ref)
        words = targets[0].params.split()
        value = next((value for word, value in pairwise(words) if word == name), None)
        if value is None:
            said = targets[0].params[:40]
            raise OSError(errno.EIO, f"the kernel does not say {name} ({said!r})", ref)
        return value

    def store(self, ref: str, name: str, value: str) -> None:
        """Set a setting by message; `table`: load one. Raises OSError."""
        if name == TABLE:
            self.reload(ref, tuple(_target(line) for line in value.splitlines()))
        else:
            self.message(ref, f"{name} {value}".rstrip())

    def table(self, ref: str) -> tuple[Target, ...]:
        """The live table: what the constructor was given, not what messages changed since."""
        return self._targets(ref, _Flag.STATUS_TABLE | _Flag.NO_FLUSH)

    def status(self, ref: str) -> tuple[Target, ...]:
        """The live status. Not flushed: with a flush each look commits dm-cache's metadata
        (dm-cache-target.c, cache_status).
        """
        return self._targets(ref, _Flag.NO_FLUSH)

    def message(self, ref: str, text: str) -> None:
        """A message to the first target. Raises OSError(EINVAL) for one that it does not know."""
        self._call(_Call.TARGET_MSG, ref, data=_SECTOR.pack(0) + text.encode() + b"\0")

    def reload(self, ref: str, targets: tuple[Target, ...]) -> None:
        """Replace the live table: load, then suspend, swap and resume in one call of the kernel.

        One call (dm-ioctl.c, do_resume): between a suspend and a resume of its own this process
        might need a page from that very device, and wait for ever. A device that is read-only stays
        so: the kernel takes that from the flag of the table. Raises OSError; then the old table is
        live still, and nothing is left loaded.
        """
        data = b"".join(_spec(target) for target in targets)
        flags = _Flag.READ_ONLY if self.device(ref).read_only else 0
        self._call(_Call.TABLE_LOAD, ref, flags, data=data, target_count=len(targets))
        try:
            self._call(_Call.DEV_SUSPEND, ref)
        except OSError:
            self._call(_Call.TABLE_CLEAR, ref)
            raise

    def _targets(self, ref: str, flags: int) -> tuple[Target, ...]:
        size = _BUFFER_BYTES
        while True:
            head, data, full, count = self._ask(_Call.TABLE_STATUS, ref, flags, size=size)
            if not full:
                return tuple(_parse_targets(data, count))
            if size >= _BUFFER_BYTES_MAX:
                raise OSError(errno.E2BIG, f"the table of {head.name} is too long", ref)
            size *= 4

    def _call(
        self,
        call: _Call,
        ref: str = "",
        flags: int = 0,
        *,
        data: bytes = b"",
        target_count: int = 0,
    ) -> tuple[DmDevice, bytes]:
        size = max(_BUFFER_BYTES, 2 * len(data))
        while True:
            head, answer, full, _ = self._ask(
                call, ref, flags, data=data, target_count=target_count, size=size
            )
            if not full or size >= _BUFFER_BYTES_MAX:
                return head, answer
            size *= 4

    def _ask(
        self,
        call: _Call,
        ref: str,
        flags: int = 0,
        *,
        data: bytes = b"",
        target_count: int = 0,
        size: int,
    ) -> tuple[DmDevice, bytes, bool, int]:
        uuid = ref.removeprefix(UUID_REF) if ref.startswith(UUID_REF) else ""
        name = "" if uuid else ref
        if max(len(name.encode()), len(uuid.encode())) > _NAME_BYTES_MAX:
            raise OSError(errno.ENXIO, "No such device or address", ref)
        buffer = bytearray(_HEAD.size + size)
        start = _HEAD.size
        _HEAD.pack_into(
            buffer, 0, *_VERSION, len(buffer), start, target_count, 0, flags, 0, 0, 0,
            name.encode(), uuid.encode(), b"",
        )  # fmt: skip
        buffer[start : start + len(data)] = data
        fcntl.ioctl(self._open(), _number(call), buffer)
        head = _HEAD.unpack_from(buffer)
        data_size, data_start, count, found_flags = head[3], head[4], head[5], head[7]
        device = DmDevice(
            name=_text(head[11]),
            uuid=_text(head[12]),
            devno=_devno(head[10]),
            suspended=bool(found_flags & _Flag.SUSPEND),
            read_only=bool(found_flags & _Flag.READ_ONLY),
            event_nr=head[8],
        )
        answer = bytes(buffer[data_start:data_size])
        return device, answer, bool(found_flags & _Flag.BUFFER_FULL), count

    def forget_handle(self) -> None:
        """After a fork that has closed every file: open the control device anew."""
        self._handle = -1

    def _open(self) -> int:
        """Opened once: for the life of the process."""
        if self._handle < 0:
            try:
                self._handle = os.open(self._control, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise Unavailable(
                    f"device-mapper cannot be asked: {self._control}: {error.strerror}",
                    "modprobe dm-mod; reading it needs root",
                ) from error
        return self._handle


def _line(target: Target) -> str:
    """As `dmsetup table` prints it."""
    return f"{target.start_sectors} {target.length_sectors} {target.kind} {target.params}"


def _target(line: str) -> Target:
    """What `_line` printed. Raises OSError(EINVAL) for anything else."""
    words = line.split(maxsplit=3)
    if len(words) != _LINE_WORDS or not (words[0].isdigit() and words[1].isdigit()):
        raise OSError(errno.EINVAL, "not a line of a table", line)
    return Target(int(words[0]), int(words[1]), words[2], words[3])


def _number(call: int) -> int:
    """_IOWR(DM_IOCTL, call, struct dm_ioctl)."""
    return 3 << 30 | _HEAD.size << 16 | 0xFD << 8 | call


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")


def _devno(number: int) -> tuple[int, int]:
    """huge_encode_dev, as user space sees a dev_t."""
    return os.major(number), os.minor(number)


def _names(data: bytes) -> Iterator[str]:
    """struct dm_name_list: dev, distance to the next entry (0: the last), name."""
    at = 0
    while at + _ROW.size <= len(data):
        number, distance = _ROW.unpack_from(data, at)
        if number == 0:
            return
        yield _text(data[at + _ROW.size :])
        if distance == 0:
            return
        at += distance


def _parse_targets(data: bytes, count: int) -> Iterator[Target]:
    """struct dm_target_spec, each with its text; `next` counts from the first."""
    at = 0
    for _ in range(count):
        start, length, _status, distance, kind = _TARGET.unpack_from(data, at)
        yield Target(start, length, _text(kind), _text(data[at + _TARGET.size :]).strip())
        at = distance


def _spec(target: Target) -> bytes:
    """One target to load; `next` counts from itself, and the kernel wants it on 8 bytes."""
    text = target.params.encode() + b"\0"
    size = (_TARGET.size + len(text) + 7) // 8 * 8
    head = _TARGET.pack(target.start_sectors, target.length_sectors, 0, size, target.kind.encode())
    return (head + text).ljust(size, b"\0")
