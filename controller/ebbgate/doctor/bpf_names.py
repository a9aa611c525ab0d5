# SPDX-License-Identifier: GPL-2.0-only
"""The names of BPF programs, which /proc does not show. I/O: the bpf(2) system call.

Two commands of linux/bpf.h: BPF_PROG_GET_FD_BY_ID and BPF_OBJ_GET_INFO_BY_FD. Where the call is not
possible (no root, another architecture) there is no name, and nothing else is lost.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Final

# System call numbers differ by architecture (asm/unistd.h).
_SYSCALLS: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_PROG_GET_FD_BY_ID: Final = 13
_OBJ_GET_INFO_BY_FD: Final = 15
# struct bpf_prog_info up to and with `name`; the kernel fills as much as it is given room for.
_INFO_BYTES: Final = 80
_NAME: Final = slice(64, 80)


def program_name(number: int) -> str:
    """The first 15 characters of the program's name; empty where it cannot be had."""
    handle = _bpf(_PROG_GET_FD_BY_ID, struct.pack("=III", number, 0, 0))
    if handle < 0:
        return ""
    try:
        info = ctypes.create_string_buffer(_INFO_BYTES)
        asked = struct.pack("=IIQ", handle, _INFO_BYTES, ctypes.addressof(info))
        if _bpf(_OBJ_GET_INFO_BY_FD, asked) < 0:
            return ""
        return info.raw[_NAME].partition(b"\0")[0].decode(errors="replace")
    finally:
        os.close(handle)


def _bpf(command: int, attributes: bytes) -> int:
    """The system call's result; negative where it failed or is unknown here."""
    syscall = _SYSCALLS.get(platform.machine())
    if syscall is None:
        return -1
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(syscall, command, buffer, len(attributes))
    return result
