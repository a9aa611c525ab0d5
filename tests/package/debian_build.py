# SPDX-License-Identifier: GPL-2.0-only
"""The packages as another release of Debian builds them from the source package of `make deb`.

I/O: a bare system with what builds packages.
"""

from __future__ import annotations

from pathlib import Path

from tests.house_rules import REPO
from tests.lab import host
from tests.package.chroot import Chroot, base

BUILT = REPO / "build" / "packages"
_TOOLS = ("build-essential", "debhelper", "dh-python", "python3-click", "python3-yaml")
_BUILD = (
    "cd /tmp; dpkg-source --no-check --extract ebbgate_*.dsc tree; cd tree;"
    " dpkg-buildpackage --no-sign --build=binary"
)


def build_in(release: str, folder: Path) -> list[Path]:
    """Build without a network; return the packages, in `folder`. Raises NoLab."""
    system = Chroot(base(release, "build", _TOOLS), folder)
    for source in [*BUILT.glob("ebbgate_*.dsc"), *BUILT.glob("ebbgate_*.tar.xz")]:
        host.run(["install", "-D", source, system.path(f"/tmp/{source.name}")])
    system.check("sh", "-ec", _BUILD)
    return sorted(system.path("/tmp").glob("ebbgate*_*.deb"))
