# SPDX-License-Identifier: GPL-2.0-only
"""A distribution's stock kernel, unpacked into the cache folder, never installed.

I/O: apt (one package, by exact name, once), the cache folder `$EBBGATE_CACHE`.
"""

from __future__ import annotations

import lzma
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests.lab import apt, downloads, host
from tests.lab.errors import NoLab


@dataclass(frozen=True, slots=True)
class Release:
    """One supported distribution kernel; a new one is a new line in RELEASES."""

    name: str
    metapackage: str
    """Package that depends on the newest kernel image of the release."""


RELEASES = {release.name: release for release in (Release("bookworm", "linux-image-amd64"),)}
DEFAULT_RELEASE = "bookworm"

_XZ_MAGIC = b"\xfd7zXZ\0"
_IMAGE = re.compile(r"\bDepends: (linux-image-(\d\S*))")


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel package."""

    abi: str
    """As in `uname -r`, e.g. 6.1.0-56-amd64."""
    root: Path
    """Folder that holds boot/ and lib/modules/ of the package."""

    @property
    def image(self) -> Path:
        """What to boot: the image without its compression where that could be undone."""
        plain = self.root / "boot" / f"vmlinux-{self.abi}"
        return plain if plain.exists() else self.root / "boot" / f"vmlinuz-{self.abi}"

    @property
    def modules(self) -> Path:
        """The modules folder, with modules.dep, for use as /lib/modules/<abi>."""
        return self.root / "lib" / "modules" / self.abi


def fetch(release: str = DEFAULT_RELEASE) -> Kernel:
    """The stock kernel of a release, from the cache if it is there.

    A cached kernel is used without asking apt anything, so a second run needs no network; remove
    its folder to move to a newer one. Raises NoLab if there is none and none can be had.
    """
    if os.uname().machine != "x86_64":
        raise NoLab(f"no lab here: made for x86_64, this is {os.uname().machine}")
    home = downloads.cache_dir() / "kernels" / release
    with downloads.locked(home):
        return _newest(home) or _download(RELEASES[release], home)


def _newest(home: Path) -> Kernel | None:
    images = sorted(home.glob("*/boot/vmlinuz-*"), key=lambda p: p.stat().st_mtime)
    if not images:
        return None
    return Kernel(images[-1].name.removeprefix("vmlinuz-"), images[-1].parents[1])


def _download(release: Release, home: Path) -> Kernel:
    host.need("apt-cache", "depmod")
    package, abi = _resolve(release)
    with downloads.made(home / abi) as scratch:
        unpacked = scratch / "root"
        apt.unpack([package], scratch, unpacked)
        host.run([host.find("depmod") or "depmod", "-b", unpacked, abi])
        _uncompress(unpacked / "boot" / f"vmlinuz-{abi}", unpacked / "boot" / f"vmlinux-{abi}")
    return Kernel(abi, home / abi)


def _uncompress(compressed: Path, plain: Path) -> None:
    """Take the kernel's ELF image out of its bzImage (scripts/extract-vmlinux, for xz).

    Under software emulation the kernel needs four to five seconds to unpack itself, every time.
    QEMU boots the ELF image directly where it has the PVH entry point, as distributions' have.
    """
    data = compressed.read_bytes()
    start = data.find(_XZ_MAGIC)
    if start >= 0:
        image = lzma.LZMADecompressor().decompress(data[start:])
        if image.startswith(b"\x7fELF"):
            plain.write_bytes(image)


def _resolve(release: Release) -> tuple[str, str]:
    listing = host.run(["apt-cache", "depends", release.metapackage])
    found = _IMAGE.search(listing)
    if not found:
        raise NoLab(f"no lab here: apt has no kernel for {release.metapackage} (apt-get update?)")
    return found[1], found[2]
