# SPDX-License-Identifier: GPL-2.0-only
"""Builds the Debian packages for arm64 on another architecture; `make deb-arm64` runs it.

I/O: a bare system with a cross compiler and the libraries of arm64; this machine stays as it is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from tests.house_rules import REPO
from tests.lab import host
from tests.lab.errors import NoLab
from tests.package.chroot import Chroot, base

ARCHITECTURE: Final = "arm64"
BUILT: Final = REPO / "build" / "packages"
_TOOLS: Final = (
    *(
        "build-essential",
        "crossbuild-essential-arm64",
        "debhelper",
        "dh-python",
        "bpftool",
        "clang",
        "llvm",
    ),
    *("python3-click", "python3-yaml", "qemu-user"),
)
_LIBRARIES: Final = ("libbpf-dev", "libcap-dev", "libelf-dev", "zlib1g-dev")


def cross_system(folder: Path) -> Chroot:
    """Return a Debian 12 that builds for arm64. Raises NoLab."""
    foreign = [f"{name}:{ARCHITECTURE}" for name in _LIBRARIES]
    return Chroot(base("bookworm", "cross", _TOOLS, foreign), folder)


def build(system: Chroot) -> list[Path]:
    """Build the source package that `make deb` has made; return the packages."""
    for source in [*BUILT.glob("ebbgate_*.dsc"), *BUILT.glob("ebbgate_*.tar.xz")]:
        host.run(["install", "-D", source, system.path(f"/tmp/{source.name}")])
    script = (
        "cd /tmp; dpkg-source --no-check --extract ebbgate_*.dsc tree; cd tree;"
        f" dpkg-buildpackage --no-sign --build=any --host-arch={ARCHITECTURE}"
    )
    system.check("sh", "-ec", script)
    return sorted(system.path("/tmp").glob(f"*_{ARCHITECTURE}.deb"))


def main() -> int:
    """Put the packages into build/packages/arm64."""
    target = BUILT / ARCHITECTURE
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            packages = build(cross_system(Path(folder) / "system"))
        except NoLab as reason:
            print(reason, file=sys.stderr)
            return Unavailable.exit_code
        for package in packages:
            (target / package.name).write_bytes(package.read_bytes())
            print(target / package.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
