# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages: the files of `make install`, twice the same bytes, clean for lintian."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.house_rules import REPO
from tests.lab import host
from tests.package.chroot import contents, dependencies, group
from tests.package.debian_build import BUILT

DEBIAN = REPO / "packaging" / "debian"
CONTROL = (DEBIAN / "control").read_text()
BUILD_ESSENTIAL = {"gcc", "libc6-dev", "make"}
LIBRARIES = {"libbpf1"}
"""dpkg-shlibdeps finds them."""
NOT_OF_MAKE_INSTALL = ("/usr/share/doc/", "/usr/share/lintian/", "/usr/share/python3/")
MOVED = {
    "/usr/lib/systemd/system": "/lib/systemd/system",
    "/usr/share/zsh/site-functions": "/usr/share/zsh/vendor-completions",
}
"""Folders of `make install PREFIX=/usr`, and Debian's."""


def digests(folder: Path, pattern: str) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob(pattern)
    }


@pytest.fixture(scope="module")
def packed(all_debs: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of all packages together."""
    folder = tmp_path_factory.mktemp("packed")
    for deb in all_debs:
        host.run(["dpkg", "-x", deb, folder])
    host.run(["find", folder / "usr/share/man", "-name", "*.gz", "-exec", "gunzip", "{}", "+"])
    return contents(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of `make install` in Debian's folders."""
    folder = tmp_path_factory.mktemp("made")
    options = ["PREFIX=/usr", "COMPILE=", "GROUP_CONF=yes", f"DESTDIR={folder}"]
    host.run(["make", "--silent", "install", "install-probe-bcc", *options], cwd=REPO)
    found = {}
    for path, digest in contents(folder).items():
        for old, new in MOVED.items():
            path = path.replace(old, new)  # noqa: PLW2901
        found[path] = digest
    return found


def test_the_packages_hold_the_files_of_make_install(
    packed: dict[str, str], made: dict[str, str]
) -> None:
    assert {path for path in packed if not path.startswith(NOT_OF_MAKE_INSTALL)} == set(made)


def test_the_files_are_equal_to_those_of_make_install(
    packed: dict[str, str], made: dict[str, str]
) -> None:
    other = {path for path, digest in made.items() if packed[path] != digest}
    # Debian's compiler flags, and its list of symbols apart.
    assert other == {"/usr/sbin/ebbgate-probe"}


def test_no_file_is_in_two_packages(all_debs: tuple[Path, ...]) -> None:
    listed = [name for deb in all_debs for name in files_of(deb)]
    assert sorted(set(listed)) == sorted(listed)


def test_the_bcc_probe_has_its_own_package(all_debs: tuple[Path, ...]) -> None:
    assert {
        name for name in files_of(all_debs[-1]) if not name[1:].startswith(NOT_OF_MAKE_INSTALL)
    } == {
        "./lib/systemd/system/ebbgated.service.d/probe-bcc.conf",
        "./usr/lib/ebbgate/bcc/programs.bcc",
        "./usr/sbin/ebbgate-probe-bcc",
        "./usr/share/man/man8/ebbgate-probe-bcc.8.gz",
    }


def files_of(deb: Path) -> set[str]:
    lines = host.run(["dpkg", "-c", deb]).splitlines()
    return {name for line in lines if not (name := line.split(maxsplit=5)[5]).endswith("/")}


def test_every_file_is_roots_and_has_no_special_mode(all_debs: tuple[Path, ...]) -> None:
    lines = [
        line.split() for deb in all_debs for line in host.run(["dpkg", "-c", deb]).splitlines()
    ]
    assert {words[1] for words in lines} == {"root/root"}
    assert {words[0] for words in lines} == {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x"}


def test_a_second_build_elsewhere_gives_the_same_bytes(tmp_path: Path) -> None:
    (source,) = BUILT.glob("ebbgate_*.dsc")
    tree = tmp_path / "elsewhere" / "tree"
    tree.parent.mkdir()
    host.run(["dpkg-source", "--no-check", "--extract", source, tree])
    subprocess.run(
        ["bash", "-c", "umask 027; exec dpkg-buildpackage --no-sign --build=binary"],
        cwd=tree,
        env={"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo", "LC_ALL": "C", "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        timeout=600,
    )
    first = digests(BUILT, "*.deb")
    assert first
    assert digests(tree.parent, "*.deb") == first


def names_of(listed: str) -> set[str]:
    """Return the files of a package's table of contents, less those named after their content."""
    names = {line.split(maxsplit=5)[5] for line in listed.splitlines()}
    return {name for name in names if not name.endswith("/") and "/.build-id/" not in name}


def test_lintian_has_no_error_and_no_warning() -> None:
    (changes,) = BUILT.glob("ebbgate_*.changes")
    argv = ["lintian", "--allow-root", "--fail-on=error,warning", str(changes)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", [*DEBIAN.rglob("*lintian-overrides")], ids=lambda path: path.name)
def test_every_override_of_lintian_has_a_reason(path: Path) -> None:
    lines = path.read_text().splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        assert line.startswith("#") or before.startswith("# "), line


def test_the_build_dependencies_are_those_of_deps_txt() -> None:
    named = {name for name in dependencies(CONTROL, "Build-Depends") if not name.startswith("d")}
    own = {"python3", "python3-click", "python3-yaml"}
    assert named == set(group("build")) - BUILD_ESSENTIAL | own


def test_the_dependencies_are_those_of_deps_txt() -> None:
    _, daemon, _, web = re.split(r"^Package: ", CONTROL, flags=re.M)
    named = {*dependencies(daemon, "Depends"), *dependencies(web, "Depends")}
    assert {name for name in named if name.startswith("python3-")} == {
        name for name in set(group("run")) - LIBRARIES if name != "python3"
    }
