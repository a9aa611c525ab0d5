# SPDX-License-Identifier: GPL-2.0-only
"""Whatever fails in `make demo` is one line that says what happened and what to try.

The demo's own process runs, with its emulator, its disk server and apt replaced by programs that
fail as the real ones do.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.lab.demo_failure import explain, one_line
from tests.lab.errors import EXIT_LOST_GUEST, CommandFailed, LostGuest, NoLab
from tests.programs import REPO
from tests.waiting import until

ABI = "6.1.0-0-amd64"
PLENTY = "shutil.disk_usage = lambda _: SimpleNamespace(free=1 << 40)"
_DRIVER = """
import shutil, sys
from pathlib import Path
from types import SimpleNamespace
from tests.lab import demo
demo.LOG = Path({log!r})
def prepare():
    from tests.lab import demo_run
    demo_run.PROBE = Path("/bin/sh")
    {patch}
prepare()
sys.exit(demo.main())
"""
_NBDKIT = """#!{python}
import os, socket, sys, time
with open({pids!r}, "a") as pids:
    pids.write(f"{{os.getpid()}}\\n")
wire = socket.socket(socket.AF_UNIX)
wire.bind(sys.argv[sys.argv.index("--unix") + 1])
time.sleep(600)
"""
_QEMU = """#!/bin/sh
case "$*" in *--version*) echo "QEMU emulator version 9.0.0"; exit;; esac
echo $$ >> {pids}
{behaviour}
"""


@dataclass
class FakeLab:
    """A machine with programs of the lab that fail on request."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pids = self.folder / "pids"
        self.log = self.folder / "demo.log"
        programs = self.folder / "bin"
        programs.mkdir()
        for part in ("boot", f"lib/modules/{ABI}"):
            (self.folder / f"cache/kernels/bookworm/{ABI}/{part}").mkdir(parents=True)
        kernel = self.folder / f"cache/kernels/bookworm/{ABI}"
        (kernel / f"boot/vmlinuz-{ABI}").write_bytes(b"")
        (kernel / f"lib/modules/{ABI}/modules.dep").write_text("")
        (self.folder / "tmp").mkdir()
        self.program("nbdkit", _NBDKIT.format(python=sys.executable, pids=str(self.pids)))
        self.program("busybox", "static")
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{REPO / 'controller'}:{REPO}",
            "EBBGATE_CACHE": str(self.folder / "cache"),
            "TMPDIR": str(self.folder / "tmp"),
        }

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def emulator(self, behaviour: str) -> None:
        text = _QEMU.format(pids=self.pids, behaviour=behaviour)
        self.program("qemu-system-x86_64", text)

    def start(self, patch: str = PLENTY) -> subprocess.Popen[str]:
        code = _DRIVER.format(log=str(self.log), patch=patch)
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def fails(self, patch: str = PLENTY, number: signal.Signals | None = None) -> tuple[int, str]:
        """The exit code and the one line; nothing that the demo started is left."""
        process = self.start(patch)
        if number is not None:
            until(lambda: len(self.started()) == 3)
            process.send_signal(number)
        out, err = process.communicate(timeout=50)
        assert "Traceback" not in out + err, err
        (line,) = err.splitlines()
        assert line.startswith("demo: ")
        assert "; try: " in line
        until(lambda: not any(runs(pid) for pid in self.started()))
        assert not list((self.folder / "tmp").iterdir()), "the guest's folder is left"
        return process.returncode, line

    def loses_guest(self, *said: str, patch: str = PLENTY) -> None:
        """It ends as one whose guest is lost, and says all of this."""
        code, line = self.fails(patch)
        assert code == EXIT_LOST_GUEST
        assert all(each in line for each in said), line

    def started(self) -> list[int]:
        try:
            return [int(line) for line in self.pids.read_text().splitlines()]
        except FileNotFoundError:
            return []


def runs(pid: int) -> bool:
    """Not gone, and not dead and waiting for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[FakeLab]:
    made = FakeLab(tmp_path)
    yield made
    for pid in made.started():
        assert not runs(pid), f"{pid} is left"


def test_a_machine_without_the_lab_s_programs(lab: FakeLab) -> None:
    lab.environment["PATH"] = "/nonexistent"
    lab.loses_guest("no lab here", "try: make deps (as root)")


TAKEN = "Could not set up host forwarding rule 'tcp:127.0.0.1:8380-:8380'"
FULL = "shutil.disk_usage = lambda _: SimpleNamespace(free={})"


@pytest.mark.parametrize(
    ("patch", "emulator", "said"),
    [
        ("demo_run.PROBE = demo_run.REPO / 'none'", "exit 1", ["is not built"]),
        (PLENTY, f'echo "qemu: {TAKEN}"; exit 1', ["took port 8380"]),
        (FULL.format(1 << 30), "exit 1", ["1024 MiB of free space", "TMPDIR="]),
        (f"demo_run.need_space = lambda: None; {FULL.format(1)}", "exit 1", ["the disk is full"]),
    ],
    ids=["probe", "port", "no room", "disk fills up"],
)
def test_a_demo_that_cannot_continue_has_a_reason(
    lab: FakeLab, patch: str, emulator: str, said: list[str]
) -> None:
    lab.emulator(emulator)
    lab.loses_guest(*said, patch=patch)


def test_a_mirror_that_cannot_be_reached(lab: FakeLab) -> None:
    lab.emulator("exit 1")
    lab.environment["EBBGATE_CACHE"] = str(lab.folder / "empty")
    lab.program("apt-cache", f"#!/bin/sh\necho 'Depends: linux-image-{ABI} | 1'\n")
    said = "E: Failed to fetch x\\nE: Could not resolve 'deb.debian.org'"
    lab.program("apt-get", f'#!/bin/sh\nprintf "{said}" >&2\nexit 100\n')
    lab.program("depmod", "#!/bin/sh\n")
    # While the kernel is fetched, or the lists of a release that is not the machine's own.
    lab.loses_guest("no lab here", "check the network")


def test_a_guest_that_is_lost(lab: FakeLab) -> None:
    lab.emulator("echo 'qemu: the machine is broken'; exit 1")
    lab.loses_guest("the guest was lost", "the machine is broken")
    assert "Traceback" in lab.log.read_text()


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_a_demo_that_is_ended_while_it_boots(
    lab: FakeLab, number: signal.Signals, name: str
) -> None:
    lab.emulator("exec sleep 600")
    code, line = lab.fails(number=number)
    assert code == 128 + number
    assert name in line


def test_a_demo_that_is_killed_leaves_no_helper(lab: FakeLab) -> None:
    lab.emulator("exec sleep 600")
    process = lab.start()
    until(lambda: len(lab.started()) == 3)
    process.kill()
    process.communicate(timeout=20)
    until(lambda: not any(runs(pid) for pid in lab.started()))


def test_any_other_error_is_one_line_with_its_traceback_in_a_log(lab: FakeLab) -> None:
    patch = "demo_run.run = lambda **_: [].pop()"
    code, line = lab.fails(patch)
    assert code == 1
    assert "IndexError: pop from empty list" in line
    assert f"details: {os.path.relpath(lab.log)}" in line
    assert "Traceback" in lab.log.read_text()


def test_an_unknown_argument_gets_argparses_message(lab: FakeLab) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.demo", "--nonsense"],
        env=lab.environment,
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (CommandFailed("in the guest: fio: exit 1\nfio: No space left on device"), "disk is full"),
        (LostGuest("no answer\nqemu: Cannot allocate memory"), "2 GiB of memory"),
        (NoLab("no lab here: made for x86_64, this is arm"), "made for x86_64"),
        (json.JSONDecodeError("Expecting value", "", 0), "JSONDecodeError: Expecting value"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_each_error_has_a_line_of_its_own(error: Exception, said: str) -> None:
    failure = explain(error)
    assert said in failure.what
    assert "\n" not in failure.what + failure.next_step
    assert failure.code != 0


def test_a_long_text_is_cut_to_what_it_begins_and_ends_with() -> None:
    assert one_line("first\n\nmiddle\nlast.\n") == "first: last"
