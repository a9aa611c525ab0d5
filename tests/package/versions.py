# SPDX-License-Identifier: GPL-2.0-only
"""Other versions of ebbgate: 0.1.0 from this clone, and a newer one.

I/O: git, make, dpkg-deb, rpmbuild.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ebbgate import __version__
from tests.house_rules import REPO
from tests.lab import host
from tests.lab.errors import CommandFailed

Debs = tuple[Path, Path]
"""`ebbgate` and `ebbgate-web`."""
NEWER = f"{__version__}+newer"


def install_0_1(destdir: Path, folder: Path) -> Path:
    """Install the last 0.1.0 as its own `make install` does; return its tree.

    Probe and dashboard are today's, since to build them takes minutes.
    """
    bump = ["git", "log", "--format=%H", '-S__version__ = "0.2.0"', "--"]
    commits = host.run([*bump, "controller/ebbgate/__init__.py"], cwd=REPO).split()
    tree = folder / "0.1.0"
    tree.mkdir()
    try:
        host.run(["git", "archive", "-o", folder / "0.1.0.tar", f"{commits[-1]}^"], cwd=REPO)
    except (IndexError, CommandFailed) as error:
        pytest.skip(f"the history of this clone does not have 0.1.0: {error}")
    host.run(["tar", "-C", tree, "-xf", folder / "0.1.0.tar"])
    built = REPO / "build"
    ready = ["--old-file=probe", "--old-file=webui"]
    ready += [f"PROBE={built}/ebbgate-probe", f"UI={built}/webui"]
    host.run(["make", "install", *ready, f"DESTDIR={destdir}"], cwd=tree)
    return tree


def newer_debs(debs: Debs, folder: Path) -> Debs:
    """Make the same packages as a newer version."""
    return newer_deb(debs[0], folder), newer_deb(debs[1], folder)


def newer_deb(deb: Path, folder: Path) -> Path:
    """Make the same package as a newer version, which depends on newer versions of the others."""
    old, new = __version__, NEWER
    edits = [(f"Version: {old}", f"Version: {new}"), (f"gt {old};", f"gt {new};")]
    edits += [(f"(>= {old})", f"(>= {new})"), (f"(<< {old}.0~)", f"(<< {new}.0~)")]
    return repacked(deb, folder, *edits)


def repacked(package: Path, folder: Path, *edits: tuple[str, str]) -> Path:
    """Make the same package with other words in its control data, as of another version."""
    tree = folder / package.stem
    host.run(["dpkg-deb", "--raw-extract", package, tree])
    for name in ("control", "preinst"):
        path = tree / "DEBIAN" / name
        if path.exists():
            text = path.read_text()
            for old, new in edits:
                text = text.replace(old, new)
            path.write_text(text)
    return Path(host.run(["dpkg-deb", "--build", tree, folder]).split("'")[3])


def newer_rpms(rpms: Sequence[Path], built: Path, folder: Path) -> list[Path]:
    """Make the same packages as a newer version, with their files and the scripts of their spec."""
    payload = folder / "payload"
    payload.mkdir()
    for path in rpms:
        host.run(["bash", "-c", f"rpm2cpio {path} | cpio --quiet -idmu"], cwd=payload)
    module = payload / "usr/lib/ebbgate/ebbgate/__init__.py"
    module.write_text(module.read_text().replace(__version__, NEWER))
    (spec,) = built.glob("ebbgate-*/ebbgate.spec")
    text = spec.read_text().replace(__version__, NEWER)
    head, _, rest = text.partition("\n%prep\n")
    _, _, scripts = rest.partition("\n%pre\n")
    # Documents are named by their place in the tree of sources.
    made = "rm -r %{buildroot}/usr/share/doc %{buildroot}/usr/share/licenses"
    install = f"%install\ncp -a {payload}/. %{{buildroot}}\n{made}\n"
    changed = folder / "ebbgate.spec"
    changed.write_text(f"{head}\n%prep\ncp -a {spec.parent}/. .\n{install}\n%pre\n{scripts}")
    defines = [f"_topdir {folder}/made", "_rpmfilename %%{NAME}-%%{VERSION}.rpm"]
    defines.append("__os_install_post %{nil}")
    words = [word for define in defines for word in ("--define", define)]
    host.run(["rpmbuild", "-bb", "--nodeps", "--quiet", *words, changed])
    return sorted((folder / "made/RPMS").glob("*.rpm"))
