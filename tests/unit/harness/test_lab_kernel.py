# SPDX-License-Identifier: GPL-2.0-only
"""The lab takes kernels from the archive, and out of whatever they are compressed with."""

from __future__ import annotations

import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.lab import host, kernel
from tests.lab.compression import elf_of, plain
from tests.lab.errors import CommandFailed, NoLab

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


ABI = "7.3.4+deb13-amd64"
FULL_VERSION = "7.3.4-1~bpo13+1"
SHOWN = {
    f"linux-image-amd64={FULL_VERSION}": f"linux-image-{ABI} (= {FULL_VERSION})",
    f"linux-image-{ABI}={FULL_VERSION}": f"linux-binary-{ABI}, linux-modules-{ABI} (= 7), kmod",
}


class Archive:
    """Programs that ask an archive with two suites; the newer kernel is in the first."""

    def __init__(self, refusal: str = "") -> None:
        self.downloaded: Sequence[str] = ()
        self._refusal = refusal

    def run(self, argv: Sequence[str | Path], **options: object) -> str:
        words = [str(word) for word in argv]
        if "indextargets" in words:
            return "https://mirror.example/debian bookworm Debian\n"
        if "update" in words and self._refusal:
            raise CommandFailed(self._refusal)
        if "madison" in words:
            return f"linux-image-amd64 | {FULL_VERSION} | a\nlinux-image-amd64 | 7.2-1 | b\n"
        if "show" in words:
            return f"Package: x\nDepends: {SHOWN[words[-1]]}\nSuggests: linux-image-9-amd64\n"
        if "download" in words:
            self.downloaded = words[words.index("download") + 1 :]
            (Path(str(options["cwd"])) / "one.deb").write_bytes(b"")
        if words[0] == "dpkg":
            modules = Path(words[-1]) / "usr" / "lib" / "modules" / ABI
            modules.mkdir(parents=True)
            (modules / "vmlinuz").write_bytes(image_with(ELF))
        return ""


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Archive], Archive]:
    monkeypatch.setenv("EBBGATE_CACHE", str(tmp_path))

    def use(made: Archive) -> Archive:
        monkeypatch.setattr(host, "run", made.run)
        monkeypatch.setattr(host, "need", lambda *_: None)
        return made

    return use


def test_the_newest_kernel_is_taken_in_its_parts(archive: Callable[[Archive], Archive]) -> None:
    asked = archive(Archive())
    found = kernel.fetch("newest")
    names = [f"linux-binary-{ABI}", f"linux-modules-{ABI}"]
    assert asked.downloaded == [f"{name}={FULL_VERSION}" for name in names]
    assert (found.abi, found.image.read_bytes()) == (ABI, ELF)
    assert found.modules.is_dir()


def test_a_key_that_the_machine_lacks_is_named(archive: Callable[[Archive], Archive]) -> None:
    archive(Archive("apt-get: exit 100\nNO_PUBKEY 6ED0E7B82643E131"))
    with pytest.raises(NoLab, match="lacks the key of trixie-backports and unstable"):
        kernel.fetch("newest")
