# SPDX-License-Identifier: GPL-2.0-only
"""The packages that `make deb` and `make rpm` have built, and bare systems to install them in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.package.chroot import Chroot, base, group
from tests.package.debian_build import BUILT

_TIMEOUT_S = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test time: the first one may make a system."""
    for item in items:
        item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def debs() -> tuple[Path, Path]:
    """The packages `ebbgate` and `ebbgate-web`."""
    (daemon,), (web,) = (
        list(BUILT.glob("ebbgate_*.deb")),
        list(BUILT.glob("ebbgate-web_*.deb")),
    )
    return daemon, web


@pytest.fixture(scope="session")
def all_debs(debs: tuple[Path, Path]) -> tuple[Path, ...]:
    """These and `ebbgate-probe-bcc`."""
    return (*debs, *BUILT.glob("ebbgate-probe-bcc_*.deb"))


@pytest.fixture(scope="session")
def bookworm() -> Path:
    """A bare Debian 12."""
    try:
        return base("bookworm")
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture
def system(bookworm: Path, tmp_path: Path) -> Chroot:
    """A Debian 12 of the test's own."""
    return Chroot(bookworm, tmp_path / "system")


@pytest.fixture
def system_with_bcc(tmp_path: Path) -> Chroot:
    """The same with what ebbgate-probe-bcc depends on."""
    try:
        bcc = base("bookworm", "bcc", ("systemd", "python3-bpfcc", *group("run")))
    except NoLab as reason:
        without_lab(reason)
    system = Chroot(bcc, tmp_path / "system")
    # They are headers of Debian's kernels, which have type information.
    system.put("/etc/apt/apt.conf.d/99lab", 'APT::Install-Recommends "false";')
    return system


@pytest.fixture
def installed(system: Chroot, debs: tuple[Path, Path]) -> Chroot:
    """The same with both packages."""
    done = system.install(*debs)
    assert done.rc == 0, done.text
    return system
