# SPDX-License-Identifier: GPL-2.0-only
"""The first `make` on a machine whose own apt is at work. I/O: bash, with stand-ins for apt."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.house_rules import REPO

LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"


def install_deps(folder: Path, fails: int, why: str) -> subprocess.CompletedProcess[str]:
    """Run it where all packages are missing, with an apt-get whose `update` fails so often."""
    stand_ins = {
        "dpkg-query": "exit 1",
        "sudo": 'exec "$@"',
        "apt-get": f"""
            case " $* " in
            *" update "*)
                echo update >>{folder}/calls
                [ "$(wc -l <{folder}/calls)" -gt {fails} ] && exit 0
                echo "{why}" >&2
                exit 100 ;;
            *) echo install >>{folder}/calls ;;
            esac""",
    }
    for name, body in stand_ins.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "UPDATE_AGAIN_S": "0"}
    argv = [str(REPO / "packaging/install-deps"), "run"]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def test_it_waits_for_another_apt_that_updates_its_lists(tmp_path: Path) -> None:
    done = install_deps(tmp_path, 2, LOCKED)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().split() == ["update"] * 3 + ["install"]
    assert "waiting for it" in done.stderr


@pytest.mark.parametrize(
    ("fails", "why", "tries"), [(9, "E: Temporary failure resolving", 1), (99, LOCKED, 60)]
)
def test_it_ends_with_what_apt_says(tmp_path: Path, fails: int, why: str, tries: int) -> None:
    done = install_deps(tmp_path, fails, why)
    assert done.returncode == 69
    assert (tmp_path / "calls").read_text().split() == ["update"] * tries
    assert why in done.stderr
    assert "apt-get update failed; try: check the network and apt's sources" in done.stderr
