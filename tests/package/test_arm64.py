# SPDX-License-Identifier: GPL-2.0-only
"""The package for arm64, cross-compiled: the same files, and a probe that an arm64 system can run.

I/O: a bare system with a cross compiler; the emulator of programs runs the probe's loader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ebbgate import __version__
from tests.lab import host
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.package import cross
from tests.package.chroot import Chroot, dependencies
from tests.package.test_contents import names_of
from tests.package.versions import Debs

UNPACKED = "/unpacked"
PROBE = f"{UNPACKED}/usr/sbin/ebbgate-probe"


@dataclass(frozen=True, slots=True)
class Built:
    """The system in which it was built, with the package unpacked."""

    system: Chroot
    package: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, debs: Debs) -> Built:
    """Build it from the source package of `make deb`."""
    assert debs
    try:
        system = cross.cross_system(tmp_path_factory.mktemp("arm64") / "system")
    except NoLab as reason:
        without_lab(reason)
    package = next(path for path in cross.build(system) if path.name.startswith("ebbgate_"))
    system.check("dpkg", "-x", f"/tmp/{package.name}", UNPACKED)
    return Built(system, package)


def test_the_package_has_the_files_and_dependencies_of_amd64(built: Built, debs: Debs) -> None:
    listed = [names_of(host.run(["dpkg", "-c", deb])) for deb in (built.package, debs[0])]
    assert listed[0] == listed[1]
    control = [host.run(["dpkg", "-f", deb]) for deb in (built.package, debs[0])]
    assert "Architecture: arm64" in control[0]
    named = [set(dependencies(text, "Depends")) for text in control]
    assert {"libbpf1", "libc6"} <= named[0]
    assert named[0] == named[1]


def test_the_loader_is_a_program_for_arm64_that_finds_its_libraries(built: Built) -> None:
    header = built.system.check("readelf", "--file-header", PROBE)
    assert re.search(r"Machine: +AArch64", header)
    assert re.search(r"Type: +DYN", header)
    needed = re.findall(r"NEEDED.*\[(.*)\]", built.system.check("readelf", "--dynamic", PROBE))
    assert {"libbpf.so.1", "libcap.so.2", "libc.so.6"} <= set(needed)
    text = built.system.check("qemu-aarch64", PROBE, "--version")
    assert text.split() == ["ebbgate-probe", __version__]


def test_the_programs_for_the_kernel_are_those_of_amd64(built: Built) -> None:
    """They are the same code: what differs between kernels is filled in when they are loaded."""
    for name in ("block", "bcache"):
        path = f"/tmp/tree/build/bpf/{name}.bpf.o"
        assert re.search(r"Machine: +Linux BPF", built.system.check("readelf", "-h", path))
        ours = Path(cross.BUILT / f"ebbgate-{__version__}" / f"build/bpf/{name}.bpf.o")
        assert code_of(built.system.path(path)) == code_of(ours)


def code_of(path: Path) -> str:
    """Return the instructions of all programs in an object."""
    text = host.run(["llvm-objdump", "--disassemble", "--no-show-raw-insn", path])
    return text.partition("\n\n")[2]
