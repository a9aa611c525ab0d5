# SPDX-License-Identifier: GPL-2.0-only
"""Device-mapper through its control device. I/O: ioctls on /dev/mapper/control.

Not through libdevmapper: each volume is read on a thread of its own, and that library keeps global
state and is not thread-safe. Sizes and numbers: include/uapi/linux/dm-ioctl.h (interface 4.x).
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
LOADED: Final = Path("/sys/class/misc/device-mapper")
"""Exists while the kernel has device-mapper, whether or not this process sees its node."""
UUID_REF: Final = "uuid="
TABLE: Final = "table"
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
    BUFFER_FULL = 1 << 8
    NO_FLUSH = 1 << 11


@dataclass(frozen=True, slots=True)
class DmDevice:
    """A dm device. `uuid`: LVM's begin with `LVM-`; empty where the maker gave none."""

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


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the kernel wrote over the request. `count`: of targets; `full`: it needs more room."""

    device: DmDevice
    data: bytes
    count: int
    full: bool


class DeviceMapper:
    """The kernel's device-mapper; a call opens nothing but the control device.

    `ref`: the name of a device, or `uuid=` and its uuid, which survives a renaming. Raises OSError
    with the kernel's errno: ENXIO for a device that is gone.
    """

    def __init__(self, control: Path = CONTROL, loaded: Path = LOADED) -> None:
        self._control = control
        self._loaded = loaded
        self._handle = -1

    def present(self) -> bool:
        """Is there a device-mapper that this process may query?"""
        return os.access(self._control, os.R_OK | os.W_OK)

    def blocked(self) -> str:
        """Return why this process cannot query device-mapper; empty where it can, and where the
        kernel has none.
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
        """Return the name of every dm device."""
        return tuple(_names(self._call(_Call.LIST_DEVICES).data))

    def device(self, ref: str) -> DmDevice:
        """Return the device's name, number and state."""
        return self._call(_Call.DEV_STATUS, ref).device

    def setting(self, ref: str, name: str) -> str | None:
        """Return what `read_setting` returns; None where it raises."""
        try:
            return self.read_setting(ref, name)
        except (OSError, Unavailable):
            return None

    def read_setting(self, ref: str, name: str) -> str:
        """Return the value behind a word of the status line; for `table` the live table, as `store`
        takes it.

        Raises OSError: ENXIO where the device is gone, ENOENT where it is no cache any more (LVM
        puts another device under the old name for a snapshot), EIO where a cache does not print it.
        Raises Unavailable where device-mapper cannot be queried at all.
        """
        if name == TABLE:
            return "\n".join(_line(target) for target in self.table(ref))
        targets = self.status(ref)
        if not targets or targets[0].kind not in _WITH_SETTINGS:
            raise OSError(errno.ENOENT, "the device has no cache any more", ref)
        words = targets[0].params.split()
        value = next((value for word, value in pairwise(words) if word == name), None)
        if value is None:
            status = targets[0].params[:40]
            raise OSError(errno.EIO, f"the kernel does not say {name} ({status!r})", ref)
        return value

    def store(self, ref: str, name: str, value: str) -> None:
        """Set a setting by message; `table`: load one. Raises OSError."""
        if name == TABLE:
            self.reload(ref, tuple(_target(line) for line in value.splitlines()))
        else:
            self.message(ref, f"{name} {value}".rstrip())

    def table(self, ref: str) -> tuple[Target, ...]:
        """Return the live table: what the constructor was given, without changes by messages."""
        return self._targets(ref, _Flag.STATUS_TABLE | _Flag.NO_FLUSH)

    def status(self, ref: str) -> tuple[Target, ...]:
        """Return the live status. Not flushed: a flush commits dm-cache's metadata each time
        (dm-cache-target.c, cache_status).
        """
        return self._targets(ref, _Flag.NO_FLUSH)

    def message(self, ref: str, text: str) -> None:
        """Send a message to the first target. Raises OSError(EINVAL) for an unknown one."""
        self._call(_Call.TARGET_MSG, ref, data=_SECTOR.pack(0) + text.encode() + b"\0")

    def reload(self, ref: str, targets: tuple[Target, ...]) -> None:
        """Replace the live table: load, then suspend, swap and resume in one call of the kernel.

        One call (dm-ioctl.c, do_resume): between a separate suspend and resume this process might
        need a page from that very device, and wait for ever. A read-only device stays read-only:
        the kernel takes that from the flag of the table. Raises OSError; then the old table is
        live, and no table is left loaded, unless the error says that the device is suspended.
        """
        device, before = self.device(ref), self.table(ref)
        flags = _Flag.READ_ONLY if device.read_only else 0
        self._load(ref, targets, flags)
        try:
            self._call(_Call.DEV_SUSPEND, ref)
        except OSError as error:
            self._call(_Call.TABLE_CLEAR, ref)
            if device.suspended or self._brought_back(ref, before, flags):
                raise
            left = f"{error.strerror}; {ref} is left suspended, and the kernel's log says why"
            raise OSError(error.errno, left) from error

    def _load(self, ref: str, targets: tuple[Target, ...], flags: int) -> None:
        data = b"".join(_spec(target) for target in targets)
        self._call(_Call.TABLE_LOAD, ref, flags, data=data, count=len(targets))

    def _brought_back(self, ref: str, before: tuple[Target, ...], flags: int) -> bool:
        """Make the old table live again where the kernel has left the device suspended: it does so
        if the new one cannot begin to work, and all I/O to the device would hang for good.

        False if that fails, too: a dm-cache that has given up its metadata takes no table.
        """
        try:
            if self.device(ref).suspended:
                self._load(ref, before, flags)
                self._call(_Call.DEV_SUSPEND, ref)
        except OSError:
            return False
        return True

    def forget_handle(self) -> None:
        """Open the control device again at the next call: after a fork that closed every file."""
        self._handle = -1

    def _targets(self, ref: str, flags: int) -> tuple[Target, ...]:
        answer = self._call(_Call.TABLE_STATUS, ref, flags)
        return tuple(_parse_targets(answer.data, answer.count))

    def _call(
        self, call: _Call, ref: str = "", flags: int = 0, *, data: bytes = b"", count: int = 0
    ) -> _Answer:
        """Ask with more and more room until the answer fits."""
        size = max(_BUFFER_BYTES, 2 * len(data))
        while (answer := self._ioctl(call, _head(ref, flags, count, size), data, size)).full:
            if size >= _BUFFER_BYTES_MAX:
                raise OSError(
                    errno.E2BIG, f"the answer about {answer.device.name} is too long", ref
                )
            size *= 4
        return answer

    def _ioctl(self, call: _Call, head: bytes, data: bytes, size: int) -> _Answer:
        buffer = bytearray((head + data).ljust(_HEAD.size + size, b"\0"))
        # _IOWR(DM_IOCTL, call, struct dm_ioctl)
        fcntl.ioctl(self._open(), 3 << 30 | _HEAD.size << 16 | 0xFD << 8 | call, buffer)
        _, _, _, end, start, count, _, flags, event_nr, _, dev, name, uuid, _ = _HEAD.unpack_from(
            buffer
        )
        device = DmDevice(
            name=_text(name),
            uuid=_text(uuid),
            # huge_encode_dev, as user space sees a dev_t.
            devno=(os.major(dev), os.minor(dev)),
            suspended=bool(flags & _Flag.SUSPEND),
            read_only=bool(flags & _Flag.READ_ONLY),
            event_nr=event_nr,
        )
        return _Answer(device, bytes(buffer[start:end]), count, bool(flags & _Flag.BUFFER_FULL))

    def _open(self) -> int:
        """Opened once: for the life of the process."""
        if self._handle < 0:
            try:
                self._handle = os.open(self._control, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise Unavailable(
                    f"device-mapper cannot be queried: {self._control}: {error.strerror}",
                    "modprobe dm-mod; reading it needs root",
                ) from error
        return self._handle


def _head(ref: str, flags: int, count: int, size: int) -> bytes:
    """struct dm_ioctl. Raises OSError(ENXIO) for a name that no device can have."""
    uuid = ref.removeprefix(UUID_REF) if ref.startswith(UUID_REF) else ""
    name = b"" if uuid else ref.encode()
    if max(len(name), len(uuid.encode())) > _NAME_BYTES_MAX:
        raise OSError(errno.ENXIO, "No such device or address", ref)
    sizes = (_HEAD.size + size, _HEAD.size)
    return _HEAD.pack(*_VERSION, *sizes, count, 0, flags, 0, 0, 0, name, uuid.encode(), b"")


def _line(target: Target) -> str:
    """As `dmsetup table` prints it."""
    return f"{target.start_sectors} {target.length_sectors} {target.kind} {target.params}"


def _target(line: str) -> Target:
    """The inverse of `_line`. Raises OSError(EINVAL) for anything else."""
    words = line.split(maxsplit=3)
    if len(words) != _LINE_WORDS or not (words[0].isdigit() and words[1].isdigit()):
        raise OSError(errno.EINVAL, "not a line of a table", line)
    return Target(int(words[0]), int(words[1]), words[2], words[3])


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")


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
    """One target to load; `next` counts from itself, aligned to 8 bytes as the kernel requires."""
    text = target.params.encode() + b"\0"
    size = (_TARGET.size + len(text) + 7) // 8 * 8
    head = _TARGET.pack(target.start_sectors, target.length_sectors, 0, size, target.kind.encode())
    return (head + text).ljust(size, b"\0")
