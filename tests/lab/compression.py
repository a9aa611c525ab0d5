# SPDX-License-Identifier: GPL-2.0-only
"""What distributions compress kernels and modules with.

I/O: the program zstd, on files in a temporary folder.
"""

from __future__ import annotations

import lzma
import struct
import tempfile
from pathlib import Path

from tests.lab import host

_XZ_MAGIC, _ZSTD_MAGIC, _ELF_MAGIC = b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\x7fELF"
# Documentation/arch/x86/boot.rst
_SETUP_SECTORS, _PAYLOAD = 0x1F1, 0x248
# The payload ends with its length once it is uncompressed.
_LENGTH_BYTES = 4


def plain(data: bytes) -> bytes:
    """Uncompress xz or zstd; return anything else as it is. Raises NoLab without zstd."""
    if data.startswith(_XZ_MAGIC):
        return lzma.decompress(data)
    if not data.startswith(_ZSTD_MAGIC):
        return data
    host.need("zstd")
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "source", Path(name) / "target"
        source.write_bytes(data)
        host.run(["zstd", "--decompress", "--quiet", source, "-o", target])
        return target.read_bytes()


def elf_of(image: bytes) -> bytes:
    """Take the ELF file out of a bzImage; empty if that cannot be done."""
    start = (image[_SETUP_SECTORS] + 1) * 512
    offset, length = struct.unpack_from("<II", image, _PAYLOAD)
    payload = image[start + offset : start + offset + length - _LENGTH_BYTES]
    found = plain(payload)
    return found if found.startswith(_ELF_MAGIC) else b""
