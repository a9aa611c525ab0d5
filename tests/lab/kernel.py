# SPDX-License-Identifier: GPL-2.0-only
"""Stock kernels of a distribution, unpacked into the cache folder, never installed.

I/O: apt (packages by exact name, once), the cache folder `$EBBGATE_CACHE`.
"""

from __future__ import annotations

import os
import platform
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab import apt, compression, downloads, host
from tests.lab.errors import LabError, NoLab


@dataclass(frozen=True, slots=True)
class Release:
    """A distribution's kernel that the lab boots."""

    name: str
    suites: tuple[str, ...]
    """Suites of Debian's archive; the newest kernel of them all is taken."""


RELEASES = {
    release.name: release
    for release in (
        Release("bullseye", ("bullseye",)),
        Release("bookworm", ("bookworm",)),
        Release("trixie", ("trixie",)),
        # Whichever is ahead: backports follow upstream's releases, sometimes before unstable.
        Release("newest", ("trixie-backports", "unstable")),
    )
}
DEFAULT_RELEASE = "bookworm"

_METAPACKAGE = "linux-image-amd64"
_IMAGE = re.compile(r"\blinux-image-(\d[^\s,]*)")
# From 7.x on the image's package is empty and depends on these.
_PARTS = re.compile(r"\blinux-(?:binary|modules)-\d[^\s,]*")


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel package."""

    abi: str
    """As in `uname -r`, e.g. 6.1.0-56-amd64."""
    root: Path
    """Folder that holds boot/ and lib/modules/."""

    @property
    def image(self) -> Path:
        """What to boot: the image without its compression where that could be undone."""
        plain = self.root / "boot" / f"vmlinux-{self.abi}"
        return plain if plain.exists() else self.root / "boot" / f"vmlinuz-{self.abi}"

    @property
    def modules(self) -> Path:
        """The modules folder, with modules.dep, for use as /lib/modules/<abi>."""
        return self.root / "lib" / "modules" / self.abi

    @property
    def sources(self) -> Path:
        """The headers, if they were fetched, for use as /usr/src (kernel_headers.py)."""
        return self.root / "usr" / "src"


def chosen() -> str:
    """The release that a guest boots unless it is told: $EBBGATE_LAB_KERNEL, else the default."""
    return os.environ.get("EBBGATE_LAB_KERNEL") or DEFAULT_RELEASE


def fetch(release: str) -> Kernel:
    """The stock kernel of a release, from the cache if it is there.

    A cached kernel is used without asking apt anything, so a second run needs no network; remove
    its folder to move to a newer one. Raises NoLab if there is none and none can be had.
    """
    if os.uname().machine != "x86_64":
        raise NoLab(f"no lab here: made for x86_64, this is {os.uname().machine}")
    if release not in RELEASES:
        raise LabError(f"no kernel {release!r}: {', '.join(RELEASES)}")
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
    with tempfile.TemporaryDirectory(dir=home) as lists:
        options = apt_options(release, Path(lists))
        abi, packages = _resolve(options)
        with downloads.made(home / abi) as scratch:
            apt.unpack(packages, scratch, scratch / "root", options)
            _arrange(scratch / "root", abi)
    return Kernel(abi, home / abi)


def apt_options(release: Release, scratch: Path) -> list[str]:
    """Have apt see the release: as the machine sees its own, with its security updates."""
    own = platform.freedesktop_os_release().get("VERSION_CODENAME")
    return [] if release.suites == (own,) else apt.suites(release.suites, scratch)


def _resolve(options: Sequence[str]) -> tuple[str, list[str]]:
    """The newest kernel's name and the packages that hold it, each with its exact version."""
    versions = host.run(["apt-cache", *options, "madison", _METAPACKAGE]).splitlines()
    if not versions:
        raise NoLab(f"no lab here: apt has no kernel {_METAPACKAGE} (apt-get update?)")
    version = versions[0].split("|")[1].strip()
    image = _IMAGE.search(_depends(options, f"{_METAPACKAGE}={version}"))
    if not image:
        raise NoLab(f"no lab here: apt has no kernel in {_METAPACKAGE} {version}")
    parts = _PARTS.findall(_depends(options, f"{image[0]}={version}"))
    return image[1], [f"{name}={version}" for name in parts or [image[0]]]


def _depends(options: Sequence[str], package: str) -> str:
    shown = host.run(["apt-cache", *options, "show", package]).splitlines()
    return "".join(line for line in shown if line.startswith("Depends:"))


def _arrange(root: Path, abi: str) -> None:
    """Put image and modules where a kernel's package had them up to Debian 12."""
    if (root / "usr" / "lib" / "modules").is_dir():
        (root / "lib").mkdir(exist_ok=True)
        (root / "usr" / "lib" / "modules").rename(root / "lib" / "modules")
    boot = root / "boot"
    boot.mkdir(exist_ok=True)
    beside_modules = root / "lib" / "modules" / abi / "vmlinuz"
    if beside_modules.exists():
        beside_modules.rename(boot / f"vmlinuz-{abi}")
    host.run([host.find("depmod") or "depmod", "-b", root, abi])
    _uncompress(boot / f"vmlinuz-{abi}", boot / f"vmlinux-{abi}")


def _uncompress(compressed: Path, plain: Path) -> None:
    """Take the kernel's ELF image out of its bzImage, where it is compressed with xz or zstd.

    Under software emulation the kernel needs four to five seconds to unpack itself, every time.
    QEMU boots the ELF image directly where it has the PVH entry point, as distributions' have.
    """
    if image := compression.elf_of(compressed.read_bytes()):
        plain.write_bytes(image)
