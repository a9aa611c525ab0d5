# SPDX-License-Identifier: GPL-2.0-only
"""The installed completion in real shells: zsh at a terminal, fish as it asks itself.

I/O: a bare system with both shells.
"""

from __future__ import annotations

import pytest

from ebbgate.cli.app import COMMANDS
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.package.chroot import Chroot, base, group
from tests.package.versions import Debs

TERMINALS = "mount -t devpts -o newinstance,ptmxmode=666 devpts $root/dev/pts"
TYPE_AND_READ = r"""
import os, pty, re, select, sys, time

shell, text, wanted = sys.argv[1].split(), sys.argv[2], sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", HOME="/root", COLUMNS="200", LINES="60")
    os.execvp(shell[0], shell)


def read(until, seconds):
    # Return what the shell has shown once `until` says so, or the time is over.
    shown, end = "", time.monotonic() + seconds
    while not until(shown) and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")
    return shown


os.write(terminal, b"PS1=ready; autoload -Uz compinit; compinit -u -d /tmp/dump; echo loa''ded\n")
start = read(lambda shown: "loaded" in shown, 60)
os.write(terminal, text.encode() + b"\t")
shown = read(lambda shown: all(word in shown for word in wanted), 60)
os.kill(pid, 9)
missing = [word for word in wanted if word not in shown]
sys.exit(f"missing {missing} in {start!r} {shown!r}" if missing else 0)
"""
"""Starts a shell at a terminal, types a text and the tab, and waits for the words."""


@pytest.fixture(scope="module")
def shells(tmp_path_factory: pytest.TempPathFactory, debs: Debs) -> Chroot:
    """A Debian 12 with the packages, zsh and fish."""
    try:
        bare = base("bookworm", "shells", ("systemd", "zsh", "fish", *group("run")))
    except NoLab as reason:
        without_lab(reason)
    system = Chroot(bare, tmp_path_factory.mktemp("shells") / "system")
    done = system.install(*debs)
    assert done.rc == 0, done.text
    return system


def in_zsh(shells: Chroot, text: str, *wanted: str) -> None:
    """Type a text in zsh; each word must appear."""
    argv = ("python3", "-c", TYPE_AND_READ, "zsh -f -i", text, *wanted)
    done = shells.run(*argv, first=TERMINALS)
    assert done.rc == 0, done.text


def in_fish(shells: Chroot, text: str) -> list[str]:
    """Return what fish offers, without its descriptions."""
    lines = shells.check("fish", "-c", f"complete -C '{text}'").splitlines()
    return [line.partition("\t")[0] for line in lines]


def test_zsh_completes_a_command(shells: Chroot) -> None:
    in_zsh(shells, "ebbgate chec", "check-policy")


def test_zsh_lists_every_command(shells: Chroot) -> None:
    in_zsh(shells, "ebbgate ", *COMMANDS)


def test_zsh_completes_an_option(shells: Chroot) -> None:
    in_zsh(shells, "ebbgate drain --w", "--within")


def test_fish_offers_every_command(shells: Chroot) -> None:
    assert sorted(in_fish(shells, "ebbgate ")) == sorted(COMMANDS)


def test_fish_completes_a_command_and_an_option(shells: Chroot) -> None:
    assert in_fish(shells, "ebbgate chec") == ["check-policy"]
    assert in_fish(shells, "ebbgate drain --w") == ["--within"]
    assert in_fish(shells, "ebbgate report --format c") == ["csv"]
