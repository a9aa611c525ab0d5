# SPDX-License-Identifier: GPL-2.0-only
"""Folders that `make install` and `make uninstall` refuse before anything is run. I/O: make."""

from __future__ import annotations

import subprocess

import pytest

from tests.house_rules import REPO

PRINTS_ONLY = ("make", "--dry-run", "--no-print-directory", "--silent")


@pytest.mark.parametrize("target", ["install", "uninstall"])
@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("DESTDIR=/srv/my root", "has a space"),
        ("DESTDIR=build/root", "does not begin with /"),
        ("PREFIX=/opt/the programs", "has a space"),
        ("PREFIX=opt", "does not begin with /"),
    ],
)
def test_folders_that_rules_would_take_for_others_are_refused(
    target: str, folder: str, why: str
) -> None:
    argv = [*PRINTS_ONLY, target, folder]
    done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=False)
    name, _, value = folder.partition("=")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"{name}='{value}' {why}" in done.stderr


def test_uninstall_keeps_the_services_until_the_knobs_are_back() -> None:
    """A restore that fails ends it: what is still installed must start again at the next boot."""
    argv = [*PRINTS_ONLY, "uninstall"]
    steps = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=True).stdout
    places = [steps.index(step) for step in ("systemctl stop", "ebbgate restore", "disable")]
    assert places == sorted(places)
    assert "disable --now" not in steps
