# SPDX-License-Identifier: GPL-2.0-only
"""A bare Debian in a folder, to install packages in: no systemd runs, no network is there.

I/O: debootstrap (network, once per release), the cache folder, processes in namespaces of their
own, whose mounts end with them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ebbgate.store.journal import Journal
from tests.builders import journal_entry
from tests.fake_sysfs import FakeSysfs
from tests.house_rules import REPO
from tests.lab import apt, downloads, host
from tests.lab.errors import CommandFailed, NoLab

DEPS = REPO / "packaging" / "deps.txt"
PERCENT = "/sys/block/bcache0/bcache/writeback_percent"
FULL_VAR = (
    "mkdir -p $root/tmp/var; mount -t tmpfs -o size=400M tmpfs $root/tmp/var;"
    " cp -a $root/var/. $root/tmp/var; mount --bind $root/tmp/var $root/var;"
    " dd if=/dev/zero of=$root/var/filler bs=4k status=none || true"
)
"""For `Chroot.run`: a copy of /var in a file system of its own, with not a block left."""
_BOOTSTRAP_TIMEOUT_S = 900
_COMMAND_TIMEOUT_S = 300
_ENVIRONMENT = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C")


def group(name: str) -> list[str]:
    """Return the packages of a group of deps.txt."""
    words = (line.split() for line in DEPS.read_text().splitlines() if not line.startswith("#"))
    return [line[1] for line in words if line[:1] == [name]]


def base(
    release: str,
    purpose: str = "run",
    more: Sequence[str] = ("systemd",),
    foreign: Sequence[str] = (),
) -> Path:
    """Return a bare system of a release with a group of deps.txt, made once. Raises NoLab.

    `foreign`: packages of another architecture, as `NAME:ARCHITECTURE`.
    """
    if os.geteuid() != 0:
        raise NoLab("no lab here: only root can make a system in a folder")
    host.need("debootstrap", "unshare")
    packages = ",".join((*more, *group(purpose)))
    key = hashlib.sha256(",".join((packages, *foreign)).encode()).hexdigest()[:12]
    kind = (
        f"{release}-{purpose}-for-{_architecture(foreign)}" if foreign else f"{release}-{purpose}"
    )
    final = downloads.cache_dir() / "chroots" / f"{kind}-{key}"
    # Another run may hold the lock for the many minutes that a system takes to be made.
    if final.exists():
        return final
    with downloads.locked(final.parent):
        if not final.exists():
            for old in final.parent.glob(f"{kind}-{'[0-9a-f]' * len(key)}"):
                shutil.rmtree(old)
            with downloads.made(final) as scratch:
                argv = ["debootstrap", "--variant=minbase", f"--include={packages}", release]
                try:
                    root = scratch / "root"
                    root.mkdir()
                    host.run([*argv, root, apt.archive()], timeout_s=_BOOTSTRAP_TIMEOUT_S)
                    if foreign:
                        _add_foreign(root, foreign)
                except CommandFailed as error:
                    raise NoLab(f"no lab here: no {release} to be had ({error})") from error
                for archive in (root / "var/cache/apt/archives").glob("*.deb"):
                    archive.unlink()
    return final


def _architecture(foreign: Sequence[str]) -> str:
    (found,) = {name.partition(":")[2] for name in foreign}
    return found


def _add_foreign(root: Path, packages: Sequence[str]) -> None:
    """Install packages of another architecture beside the system's own."""
    install = ["apt-get", "-y", "--no-install-recommends", "install", *packages]
    for argv in (
        ["dpkg", "--add-architecture", _architecture(packages)],
        ["apt-get", "update"],
        install,
    ):
        words = ["env", "-i", *_ENVIRONMENT, "DEBIAN_FRONTEND=noninteractive", *argv]
        host.run(["chroot", root, *words], timeout_s=_BOOTSTRAP_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Done:
    """How a command in the system ended; `text`: all that it wrote."""

    rc: int
    text: str


class Chroot:
    """A system of its own on top of a base that is only read."""

    def __init__(self, base: Path, folder: Path) -> None:
        self._base = base
        self._folder = folder
        for name in ("upper", "work", "root"):
            (folder / name).mkdir(parents=True)
        self.sysfs = FakeSysfs(self.path("/sys"))

    def path(self, inside: str) -> Path:
        """Return where a file is that did not come with the base; to be used between commands."""
        return self._folder / "upper" / inside.lstrip("/")

    def run(self, *argv: str, first: str = "") -> Done:
        """Run a command; `first`: shell commands before it, outside, with the system in $root."""
        root = self._folder / "root"
        mounts = (
            f"root={root}; mount -t overlay overlay -o lowerdir={self._base},"
            f"upperdir={self._folder}/upper,workdir={self._folder}/work $root;"
            " mount -t proc proc $root/proc"
        )
        words = [*("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child")]
        words += ["bash", "-c", f'set -e; {mounts}; {first or ":"}; exec chroot $root "$@"', "bash"]
        done = subprocess.run(
            [*words, "env", "-i", *_ENVIRONMENT, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
        return Done(done.returncode, done.stdout)

    def check(self, *argv: str) -> str:
        """Run a command that must succeed; return what it wrote."""
        done = self.run(*argv)
        assert done.rc == 0, f"{' '.join(argv)}: exit {done.rc}\n{done.text}"
        return done.text

    def put(self, inside: str, text: str, mode: int = 0o644) -> None:
        """Write a file."""
        path = self.path(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def install(self, *packages: Path) -> Done:
        """Install package files with apt; nothing can be downloaded."""
        for package in packages:
            host.run(["install", "-D", "-m", "644", package, self.path(f"/tmp/{package.name}")])
        names = [f"/tmp/{package.name}" for package in packages]
        return self.run("apt-get", "-y", "--allow-downgrades", "install", *names)

    def leave_a_knob(self) -> None:
        """Write what a killed daemon leaves: a changed knob, and its original, 10, on record."""
        self.sysfs.write(PERCENT, "40")
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        path = self.path("/var/lib/ebbgate/journal.db")
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(Journal.open(path)) as journal:
            journal.put(journal_entry(boot_id=boot_id))

    def knob(self) -> str:
        """Return its value."""
        return self.sysfs.read(PERCENT)

    def files(self) -> set[str]:
        """Return the path of everything but what apt, dpkg and systemd note for themselves."""
        argv = ["find", "/", "-xdev", "-path", "/proc", "-prune", "-o", "-path", "/tmp", "-prune"]
        notes = (
            "/var/lib/dpkg",
            "/var/lib/apt",
            "/var/log",
            "/var/cache",
            "/var/lib/systemd/catalog",
        )
        listed = self.check(*argv, "-o", "-print").splitlines()
        return {path for path in listed if not path.startswith(notes)}


def contents(folder: Path) -> dict[str, str]:
    """Return what is in a folder: SHA-256 of each file, target of each link."""
    found = {}
    for path in folder.rglob("*"):
        name = f"/{path.relative_to(folder)}"
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def dependencies(control: str, field: str) -> list[str]:
    """Return the packages in a field of a control file, without alternatives and architectures."""
    found = re.search(rf"^{field}:(.*(?:\n[ \t].*)*)", control, re.M)
    assert found is not None
    words = found[1].split(",")
    names = [word.split("|")[0].split()[0] for word in words if word.strip()]
    return [re.sub(r":(any|native)$", "", name) for name in names]
