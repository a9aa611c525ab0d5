# SPDX-License-Identifier: GPL-2.0-only
"""Asks a disk for its power state without waking it. I/O: SG_IO ioctls, which may hang.

ATA disks, also behind a SAS controller or a USB bridge, get CHECK POWER MODE (ACS-3, 7.2), which
is no access to the medium: it neither spins the disk up nor restarts its standby timer. A disk
that takes no ATA command gets REQUEST SENSE (SPC-4, 6.39), which likewise changes nothing. Both
need CAP_SYS_RAWIO or are on the kernel's list of harmless commands (drivers/scsi/scsi_ioctl.c,
scsi_cmd_allowed). The kernel counts neither as a request of the disk.
"""

from __future__ import annotations

import ctypes
import errno
import os
from fcntl import ioctl
from pathlib import Path
from typing import Final

from ebbgate.model.power import DiskPower, PowerState

_SG_IO: Final = 0x2285
_FROM_DEVICE, _NO_DATA = -3, -1
_TIMEOUT_MS: Final = 5000
_SENSE_BYTES: Final = 64
_CHECK_CONDITION: Final = 0x02
CHECK_POWER_MODE: Final = bytes((0x85, 3 << 1, 0x20, *[0] * 11, 0xE5, 0))
"""ATA PASS-THROUGH(16), protocol "no data", with CK_COND: the registers come as sense data."""
REQUEST_SENSE: Final = bytes((0x03, 0, 0, 0, _SENSE_BYTES, 0))
_FIXED, _FIXED_BYTES, _DESCRIPTORS, _HEAD_BYTES = 0x70, 14, 0x72, 8
"""The two forms of sense data (SPC-4, 4.5), and the bytes of each that are read at least."""
_ATA_RETURN, _ATA_RETURN_BYTES, _ATA_PASS_THROUGH, _ATA_ERROR = 0x09, 14, b"\x00\x1d", 0x01
_STOPPED: Final = (2, 4, 2)
"""Not ready, initializing command required."""
_ATA_STATES: Final = {
    **{0x00: PowerState.STANDBY, 0x01: PowerState.STANDBY},
    **{0x40: PowerState.STANDBY, 0x41: PowerState.ACTIVE},
    **{0x80: PowerState.IDLE, 0x81: PowerState.IDLE, 0x82: PowerState.IDLE, 0x83: PowerState.IDLE},
    **{0xFF: PowerState.ACTIVE},
}
"""The count field of CHECK POWER MODE; 0x4x: the spindle of a disk with a non-volatile cache."""
_LOW_POWER: Final = 0x5E
_SCSI_STATES: Final = {
    **dict.fromkeys((0x01, 0x03, 0x05, 0x06, 0x07, 0x08, 0x42), PowerState.IDLE),
    **dict.fromkeys((0x02, 0x04, 0x09, 0x0A, 0x43), PowerState.STANDBY),
    0x41: PowerState.ACTIVE,
}
"""The qualifiers of the additional sense code 0x5E."""
_NO_ANSWER: Final = DiskPower(PowerState.UNKNOWN, "it does not report its power state")
_DENIED: Final = (
    "{} is not allowed; ebbgated needs CAP_SYS_RAWIO and read access to the disk (systemctl cat"
    " ebbgated: CapabilityBoundingSet=, DeviceAllow=)"
)


class _SgIo(ctypes.Structure):
    """`struct sg_io_hdr` of include/scsi/sg.h."""

    _fields_ = (
        ("interface_id", ctypes.c_int),
        ("dxfer_direction", ctypes.c_int),
        ("cmd_len", ctypes.c_ubyte),
        ("mx_sb_len", ctypes.c_ubyte),
        ("iovec_count", ctypes.c_ushort),
        ("dxfer_len", ctypes.c_uint),
        ("dxferp", ctypes.c_void_p),
        ("cmdp", ctypes.c_void_p),
        ("sbp", ctypes.c_void_p),
        ("timeout", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("pack_id", ctypes.c_int),
        ("usr_ptr", ctypes.c_void_p),
        ("status", ctypes.c_ubyte),
        ("masked_status", ctypes.c_ubyte),
        ("msg_status", ctypes.c_ubyte),
        ("sb_len_wr", ctypes.c_ubyte),
        ("host_status", ctypes.c_ushort),
        ("driver_status", ctypes.c_ushort),
        ("resid", ctypes.c_int),
        ("duration", ctypes.c_uint),
        ("info", ctypes.c_uint),
    )


def ask(node: Path) -> DiskPower:
    """Return the power state of the disk of a device node; never raises OSError."""
    try:
        # Without O_NONBLOCK a removable disk would be made ready, so spun up.
        disk = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _failed(error, f"opening {node}")
    try:
        found = of_ata_sense(_command(disk, CHECK_POWER_MODE)[0])
        return found or of_request_sense(_command(disk, REQUEST_SENSE, data=True)[1]) or _NO_ANSWER
    except OSError as error:
        return _failed(error, "the ioctl SG_IO")
    finally:
        os.close(disk)


def _command(disk: int, command: bytes, *, data: bool = False) -> tuple[bytes, bytes]:
    """Send a command; return its sense data (empty without any) and its data. Raises OSError."""
    sense, answer = ctypes.create_string_buffer(_SENSE_BYTES), ctypes.create_string_buffer(64)
    cdb = ctypes.create_string_buffer(command, len(command))
    request = _SgIo(
        interface_id=ord("S"),
        dxfer_direction=_FROM_DEVICE if data else _NO_DATA,
        cmd_len=len(command),
        mx_sb_len=_SENSE_BYTES,
        dxfer_len=len(answer) if data else 0,
        dxferp=ctypes.addressof(answer) if data else None,
        cmdp=ctypes.addressof(cdb),
        sbp=ctypes.addressof(sense),
        timeout=_TIMEOUT_MS,
    )
    ioctl(disk, _SG_IO, request)
    if request.host_status:
        raise OSError(errno.EIO, f"the host adapter reports error {request.host_status:#x}")
    written = request.sb_len_wr if request.status == _CHECK_CONDITION else 0
    length = len(answer) - request.resid if data and not request.status else 0
    return sense.raw[:written], answer.raw[:length]


def of_ata_sense(sense: bytes) -> DiskPower | None:
    """Return the state in the sense data of CHECK POWER MODE; None: no ATA registers in it."""
    count = _ata_count(sense)
    if count is None:
        return None
    state = _ATA_STATES.get(count)
    if state is None:
        return DiskPower(PowerState.UNKNOWN, f"its power mode {count:#04x} means nothing here")
    return DiskPower(state)


def _ata_count(sense: bytes) -> int | None:
    """Return the count register of an ATA command that did not fail (SAT-4, 12.2.2)."""
    form = _form(sense)
    if form == _FIXED and sense[12:14] == _ATA_PASS_THROUGH:
        return None if sense[4] & _ATA_ERROR else sense[6]
    rest = sense[_HEAD_BYTES:] if form == _DESCRIPTORS else b""
    while len(rest) >= _ATA_RETURN_BYTES:
        if rest[0] == _ATA_RETURN:
            return None if rest[13] & _ATA_ERROR else rest[5]
        rest = rest[rest[1] + 2 :]
    return None


def _form(sense: bytes) -> int | None:
    """Return the form of sense data; None if it is cut off or none at all."""
    form = sense[0] & 0x7F if sense else None
    least = {_FIXED: _FIXED_BYTES, _DESCRIPTORS: _HEAD_BYTES}.get(form or 0, 0)
    return form if least and len(sense) >= least else None


def of_request_sense(sense: bytes) -> DiskPower | None:
    """Return the state in the data of REQUEST SENSE; None: it tells nothing of that.

    "No sense" does not mean that it turns: many disks and bridges never tell more.
    """
    form = _form(sense)
    if form is None:
        return None
    key, code, qualifier = (
        (sense[1] & 0x0F, sense[2], sense[3])
        if form == _DESCRIPTORS
        else (sense[2] & 0x0F, sense[12], sense[13])
    )
    if code == _LOW_POWER:
        state = _SCSI_STATES.get(qualifier)
        return DiskPower(state) if state else None
    stopped = (key, code, qualifier) == _STOPPED
    return DiskPower(PowerState.STANDBY) if stopped else None


def _failed(error: OSError, what: str) -> DiskPower:
    if error.errno in (errno.EPERM, errno.EACCES):
        return DiskPower(PowerState.UNKNOWN, _DENIED.format(what))
    return DiskPower(PowerState.UNKNOWN, f"{what} failed: {error.strerror}")
