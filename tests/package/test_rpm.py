# SPDX-License-Identifier: GPL-2.0-only
"""The rpm packages: installed in a folder they give the files of the Debian packages."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from ebbgate import __version__
from tests.house_rules import REPO
from tests.lab import host
from tests.package.chroot import PERCENT, Chroot, Done, contents
from tests.package.debian_build import BUILT

RPMS = BUILT / "rpm"
LINT = REPO / "packaging" / "rpm" / "rpmlint.toml"
OWN = ("/usr/share/doc/", "/usr/share/licenses/", "/usr/share/lintian/", "/usr/share/python3/")
"""Folders that each kind of package fills in its own way."""
MOVED = {
    "/lib/systemd/system": "/usr/lib/systemd/system",
    "/usr/share/zsh/vendor-completions": "/usr/share/zsh/site-functions",
}
"""Debian's folders, and rpm's."""


def rpms() -> list[Path]:
    return sorted(path for path in RPMS.glob("*.rpm") if not path.name.endswith(".src.rpm"))


@pytest.fixture(scope="module")
def from_rpm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of all packages; their scripts need a running system."""
    root = tmp_path_factory.mktemp("rpm")
    (root / "rpmdb").mkdir()
    options = ["--root", str(root), "--dbpath", "/rpmdb", "--nodeps", "--noscripts", "--ignorearch"]
    host.run(["rpm", *options, "--install", *rpms()])
    assert len(host.run(["rpm", *options[:4], "--query", "--all"]).split()) == 3
    host.run(["find", root / "usr/share/man", "-name", "*.gz", "-exec", "gunzip", "{}", "+"])
    return {
        path: digest
        for path, digest in contents(root).items()
        if not path.startswith(("/rpmdb", *OWN))
    }


@pytest.fixture(scope="module")
def from_deb(
    all_debs: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The files of the Debian packages, in rpm's folders."""
    root = tmp_path_factory.mktemp("deb")
    for deb in all_debs:
        host.run(["dpkg", "-x", deb, root])
    host.run(["find", root / "usr/share/man", "-name", "*.gz", "-exec", "gunzip", "{}", "+"])
    found = {}
    for path, digest in contents(root).items():
        for old, new in MOVED.items():
            path = re.sub(rf"^{old}", new, path)  # noqa: PLW2901
        if not path.startswith(OWN):
            found[path] = digest
    return found


def test_both_kinds_of_packages_have_the_same_files(
    from_rpm: dict[str, str], from_deb: dict[str, str]
) -> None:
    assert set(from_rpm) == set(from_deb)
    other = {path for path, digest in from_rpm.items() if from_deb[path] != digest}
    # Each is compiled with the flags of its distribution.
    assert other <= {"/usr/sbin/ebbgate-probe"}


def rpm(system: Chroot, *words: str | Path) -> Done:
    """Run this machine's rpm on the system; the scripts of the packages run inside."""
    options = "--root $root --dbpath /var/lib/rpm --nodeps"
    return system.run("true", first=f"rpm {options} {' '.join(map(str, words))}")


def test_the_packages_install_and_leave_with_every_knob_restored(system: Chroot) -> None:
    done = rpm(system, "--install", *rpms())
    assert done.rc == 0, done.text
    for program in ("ebbgate", "ebbgated", "ebbgate-web", "ebbgate-probe"):
        assert system.check(program, "--version").strip().endswith(__version__)
    assert system.check("getent", "passwd", "ebbgate")
    token = system.check("stat", "-c", "%a %U:%G", "/etc/ebbgate/web-token")
    assert token.split() == ["640", "root:ebbgate"]
    system.leave_a_knob()
    done = rpm(system, "--erase", "ebbgate-probe-bcc", "ebbgate-web", "ebbgate")
    assert done.rc == 0, done.text
    assert system.knob() == "10"
    assert [path for path in system.files() if path.startswith("/usr/lib/ebbgate")] == []


def test_a_removal_stops_if_a_knob_cannot_be_restored(system: Chroot) -> None:
    assert rpm(system, "--install", *rpms()).rc == 0
    system.leave_a_knob()
    system.path(PERCENT).unlink()
    system.path(PERCENT).mkdir()
    done = rpm(system, "--erase", "ebbgate-probe-bcc", "ebbgate-web", "ebbgate")
    assert done.rc != 0
    assert "so nothing is removed; try again, or reboot first" in done.text
    assert system.check("ebbgate", "--version").strip().endswith(__version__)


def rpmlint(*options: str | Path) -> str:
    (spec,) = BUILT.glob("ebbgate-*/ebbgate.spec")
    argv = ["rpmlint", *map(str, options), *map(str, RPMS.glob("*.rpm")), str(spec)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout


def test_rpmlint_has_no_error_and_no_warning() -> None:
    said = rpmlint("-c", LINT)
    assert re.search(r" 0 errors, 0 warnings", said), said


def test_every_group_of_filters_of_rpmlint_has_a_reason_and_each_is_needed() -> None:
    text = LINT.read_text()
    assert not re.search(r'\[\n *"', text), "a filter without a comment above its group"
    said = rpmlint()
    for each in tomllib.loads(text)["Filters"]:
        assert re.search(each, said), f"rpmlint does not say {each!r} any more: remove it"


@pytest.mark.parametrize(
    "moment", ["prein", "postin", "preun", "postun", "transfiletriggerscripts"]
)
def test_every_script_can_be_parsed(moment: str) -> None:
    for path in rpms():
        script = host.run(["rpm", "--query", "--package", "--queryformat", f"%{{{moment}}}", path])
        subprocess.run(["sh", "-n"], input=script, text=True, check=True, timeout=60)


def test_a_second_build_elsewhere_gives_the_same_bytes(tmp_path: Path) -> None:
    (source,) = RPMS.glob("*.src.rpm")
    argv = ["rpmbuild", "--rebuild", "--nodeps", "--define", f"_topdir {tmp_path}", str(source)]
    subprocess.run(
        ["bash", "-c", 'umask 027; exec "$@"', "bash", *argv],
        env={"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo", "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        timeout=600,
    )
    again = {path.name: path.read_bytes() for path in (tmp_path / "RPMS").rglob("*.rpm")}
    assert again.keys() == {path.name for path in rpms()}
    assert [path.name for path in rpms() if again[path.name] != path.read_bytes()] == []
