# SPDX-License-Identifier: GPL-2.0-only
"""Packages of the distribution, unpacked into a folder, never installed.

I/O: apt-get and dpkg; the network.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tests.lab import host
from tests.lab.errors import CommandFailed, NoLab

# Without it apt warns that its sandbox user cannot write into a private folder.
_AS_CALLER = ("-o", "APT::Sandbox::User=root")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_DOWNLOAD_TIMEOUT_S = 600


def unpack(
    packages: Sequence[str], scratch: Path, target: Path, options: Sequence[str] = ()
) -> None:
    """Download packages (`NAME` or `NAME/SUITE`) into `scratch`, unpack them into `target`.

    Raises NoLab if one cannot be had.
    """
    host.need("apt-get", "dpkg")
    argv = ["apt-get", "-q", *_AS_CALLER, *options, "download", *packages]
    try:
        host.run(argv, cwd=scratch, timeout_s=_DOWNLOAD_TIMEOUT_S)
    except CommandFailed as error:
        names = " ".join(packages)
        raise NoLab(f"no lab here: {names} cannot be downloaded ({error})") from error
    for package in scratch.glob("*.deb"):
        host.run(["dpkg", "-x", package, target])


def suites(names: Sequence[str], scratch: Path) -> list[str]:
    """Options that have apt see these suites of the archive that this machine uses, and only them.

    Nothing of the machine's own sources and lists changes. Raises NoLab if the archive cannot be
    asked.
    """
    lists = scratch / "lists"
    (lists / "partial").mkdir(parents=True)
    sources = scratch / "sources.list"
    options = [
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", f"Dir::State::lists={lists}"),
        *("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="),
    ]
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    wanted = " and ".join(names)
    try:
        sources.write_text("".join(f"deb {signed}{archive()} {name} main\n" for name in names))
        update = ["apt-get", "-q", *_AS_CALLER, *options, "update", "--error-on=any"]
        host.run(update, timeout_s=_DOWNLOAD_TIMEOUT_S)
    except CommandFailed as error:
        if "NO_PUBKEY" in str(error):
            raise NoLab(
                f"no lab here: {_KEYRING} lacks the key of {wanted}; "
                "a newer debian-archive-keyring has it"
            ) from error
        raise NoLab(f"no lab here: no {wanted} to be had ({error})") from error
    return options


def archive() -> str:
    """Where this machine gets its Debian from."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN)"]
    argv.append("Created-By: Packages")
    for line in host.run(argv).splitlines():
        words = line.split()
        # The plain release: its suite is one word (bookworm-updates and -security are not it).
        if len(words) == 3 and words[2] == "Debian" and "-" not in words[1]:
            return words[0]
    raise CommandFailed(f"{shlex.join(argv)}: names no Debian archive (apt-get update?)")
