# SPDX-License-Identifier: GPL-2.0-only
"""The lab takes kernels and modules out of whatever they are compressed with."""

from __future__ import annotations

import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable

import pytest

from tests.lab.compression import elf_of, plain

ELF = b"\x7fELF" + bytes(range(256)) * 64


def zstd(data: bytes) -> bytes:
    if not shutil.which("zstd"):
        pytest.skip("zstd is not installed")
    return subprocess.run(["zstd", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def image_with(payload: bytes) -> bytes:
    """A bzImage: a boot sector, three sectors of set-up, code, the payload, more code."""
    code = b"\xfd7zXZ\0 is not the payload"
    head = bytearray(4 * 512)
    head[0x1F1] = 3
    struct.pack_into("<II", head, 0x248, len(code), len(payload) + 4)
    return bytes(head) + code + payload + struct.pack("<I", len(ELF)) + code


@pytest.mark.parametrize("compress", [lzma.compress, zstd, bytes])
def test_an_image_gives_its_elf_file(compress: Callable[[bytes], bytes]) -> None:
    assert elf_of(image_with(compress(ELF))) == ELF


def test_an_image_with_an_unknown_payload_gives_nothing() -> None:
    assert elf_of(image_with(b"\x02!L\x18 lz4")) == b""


@pytest.mark.parametrize("compress", [lzma.compress, zstd, bytes])
def test_a_module_is_uncompressed(compress: Callable[[bytes], bytes]) -> None:
    assert plain(compress(ELF)) == ELF
