# SPDX-License-Identifier: GPL-2.0-only
"""Faults and signals at each step of each script, and tools that fail.

Whatever happens, what the script says at its end is true: done, all as before, or what is not.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.shell.machines import SCENARIOS
from tests.shell.recorded import Machine

# A test runs a script many times, and a machine may be busy.
pytestmark = pytest.mark.timeout(600)

# Messages of a script that ends early.
AS_BEFORE = "everything that this run changed is as it was before"
NOT_AS_BEFORE = "NOT as it was before this run:"
POINT_OF_NO_RETURN = "has no cache any more; all its data is on"
KINDS = ("fails", "fails-late", "TERM")
# Each script once; `make test-full` also runs the variants of the same steps.
EACH_SCRIPT = ("attach-force", "detach-free")
CASES = [
    pytest.param(name, marks=() if name.endswith(EACH_SCRIPT) else pytest.mark.full)
    for name in SCENARIOS
]
USELESS = ("fails", "old", "garbage")
# Tools whose output decides something.
ASKED = ("lvs", "pvs", "dmsetup", "blockdev", "stat", "wipefs", "bcache-super-show")
EXIT_CODES = (64, 66, 69, 74)


@cache
def good_run(name: str) -> tuple[list[str], dict[str, str], list[str]]:
    """Return its steps, the state that it leaves, and the commands that it prints."""
    scenario = SCENARIOS[name]
    with TemporaryDirectory() as folder:
        machine = Machine(Path(folder), **scenario.machine)
        done = machine.start(*scenario.argv)
        assert done.returncode == 0, done.stderr
        said = [line[2:] for line in done.stderr.splitlines() if line.startswith("+ ")]
        said = [line.replace(str(machine.sys), "/sys") for line in said]
        return machine.steps(), unrooted(machine), said


def unrooted(machine: Machine) -> dict[str, str]:
    """Return the state without the path of this machine."""
    return {name: text.replace(str(machine.root), "") for name, text in machine.state().items()}


def commands(lines: list[str]) -> list[str]:
    """Return the lines without quotes and comments."""
    return [" ".join(shlex.split(line)) for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_dry_run_prints_the_commands_that_the_real_run_starts(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    steps, _, said = good_run(name)
    text = Machine(tmp_path, **scenario.machine).run(scenario.argv[0], "-n", *scenario.argv[1:])
    printed = commands(text.splitlines()[1:-1])
    assert printed == commands(said)
    assert printed == [" ".join(line.split()) for line in steps]


def differences(before: dict[str, str], now: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return what has changed."""
    return {
        name: (before.get(name, ""), now.get(name, ""))
        for name in {*before, *now}
        if before.get(name) != now.get(name)
    }


def check_truth(name: str, machine: Machine, before: dict[str, str], code: int, text: str) -> None:
    """Compare the last messages with the state."""
    _, after, _ = good_run(name)
    now = unrooted(machine)
    if code == 0:
        assert differences(after, now) == {}
    elif POINT_OF_NO_RETURN in text:
        assert NOT_AS_BEFORE in text
        assert differences(before, now)
    else:
        assert differences(before, now) == {}, text
        assert "INCONSISTENT" not in text
    assert not (machine.root / "executed").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_messages_after_a_fault_at_any_step_are_true(name: str, kind: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    for number, step in enumerate(good_run(name)[0], 1):
        machine = Machine(tmp_path / f"{number}", **scenario.machine, fault=f"{number} {kind}")
        machine.install()
        before = unrooted(machine)
        done = machine.start(*scenario.argv)
        text = done.stderr
        # Two writes to `register` may be lost: udev, or the first of them, was faster.
        expected = (0, 130) if kind == "TERM" else (74,)
        if kind == "fails-late" and step.endswith("/register"):
            expected = (0,)
        assert done.returncode in expected, f"{step}: {text}"
        check_truth(name, machine, before, done.returncode, text)
        if done.returncode:
            assert AS_BEFORE in text or NOT_AS_BEFORE in text


def again(machine: Machine) -> Machine:
    """Return the same machine without its fault."""
    (machine.root / "fault").unlink()
    return replace(machine, fault="")


@pytest.mark.parametrize("kind", ["killed-before", "killed-after"])
@pytest.mark.parametrize("name", CASES)
def test_after_a_kill_the_same_command_continues_or_names_the_next(
    name: str, kind: str, tmp_path: Path
) -> None:
    scenario = SCENARIOS[name]
    for number, step in enumerate(good_run(name)[0], 1):
        machine = Machine(tmp_path / f"{number}", **scenario.machine, fault=f"{number} {kind}")
        assert machine.start(*scenario.argv).returncode == -9
        machine = again(machine)
        text = machine.start(*scenario.argv)
        if text.returncode == 0:
            assert unrooted(machine) == good_run(name)[1] or "detach" in name, step
            continue
        assert text.returncode == 64, f"{step}: {text.stderr}"
        assert NEXT_STEP.search(text.stderr), f"{step}: {text.stderr}"


# Messages after a kill that name the next command.
NEXT_STEP = re.compile(
    r"pvremove /dev/sdb makes it blank"
    r"|use that volume with --cache-lv \w+"
    r"|has a cache already\n  stack-status"
    r"|if you need its set: echo /dev/sdb > \S+/register"
    r"|has no (cache|dm-cache: it is linear|dm-writecache: it is linear)\n"
)


@pytest.mark.parametrize("how", USELESS)
@pytest.mark.parametrize("name", CASES)
def test_a_check_that_cannot_be_made_refuses(name: str, how: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    for tool in ASKED:
        machine = Machine(tmp_path / tool, **scenario.machine, faults={tool: how})
        machine.install()
        before = unrooted(machine)
        done = machine.start(*scenario.argv)
        if done.returncode == 0:
            # This script does not need it.
            assert machine.steps() == good_run(name)[0], tool
            continue
        assert done.returncode in EXIT_CODES, f"{tool}: {done.stderr}"
        if POINT_OF_NO_RETURN not in done.stderr:
            assert unrooted(machine) == before, f"{tool}: {done.stderr}"
        check_truth(name, machine, before, done.returncode, done.stderr)


@pytest.mark.parametrize("name", CASES)
def test_a_missing_tool_is_reported_before_the_first_step(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    steps = good_run(name)[0]
    # `stat` is of coreutils, which has half of what a shell needs.
    tools = {step.split()[0] for step in steps} | {*ASKED} - {"stat"}
    for tool in sorted(tools - {"echo"}):
        machine = Machine(tmp_path / tool, **scenario.machine, without=tool)
        done = machine.start(*scenario.argv)
        if done.returncode == 0:
            # This script does not need it.
            assert machine.steps() == steps
            continue
        assert done.returncode == 69, f"{tool}: {done.stderr}"
        assert f"{tool} is not installed\n  install the package" in done.stderr
        assert machine.steps() == []
