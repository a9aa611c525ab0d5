# SPDX-License-Identifier: GPL-2.0-only
"""Programs that must not be killed, such as LVM's while a volume is suspended."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import Unavailable
from ebbgate.kernel import run as module
from ebbgate.kernel.run import run, run_unkilled

# As LVM between suspend and resume, and as LVM that waits for a lock.
SUSPENDS = "trap '' INT; echo >began; sleep 1.2; echo resumed >state; echo done"
WAITS = "trap 'echo stopped >state; exit 5' INT; echo >began; while :; do sleep 0.05; done"


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """As in a terminal: what a shell starts in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def interrupt_once_it_runs(here: Path, times: int = 1) -> None:
    """What Ctrl-C does to this process."""

    def wait_and_interrupt() -> None:
        pause = threading.Event()
        while not (here / "began").exists():
            pause.wait(0.01)
        for _ in range(times):
            pause.wait(0.4)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait_and_interrupt, daemon=True).start()


def test_an_interrupt_lets_a_program_end_what_it_does(here: Path) -> None:
    interrupt_once_it_runs(here)
    done = run_unkilled(["sh", "-c", SUSPENDS], timeout_s=30)
    assert (done.stdout, (here / "state").read_text()) == ("done\n", "resumed\n")


def test_an_interrupt_ends_a_program_that_waits(here: Path) -> None:
    interrupt_once_it_runs(here)
    with pytest.raises(KeyboardInterrupt):
        run_unkilled(["sh", "-c", WAITS], timeout_s=30)
    assert (here / "state").read_text() == "stopped\n"


def test_an_interrupt_while_a_program_starts_waits_for_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = subprocess.Popen

    def interrupted_before_it_returns(*words: Any, **how: Any) -> subprocess.Popen[bytes]:
        process = started(*words, **how)
        while not (here / "began").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr("subprocess.Popen", interrupted_before_it_returns)
    run_unkilled(["sh", "-c", SUSPENDS], timeout_s=30)
    assert (here / "state").read_text() == "resumed\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_leaves_the_program_running(here: Path) -> None:
    interrupt_once_it_runs(here, times=2)
    with pytest.raises(Unavailable, match="it goes on: sh -c"):
        run_unkilled(["sh", "-c", SUSPENDS], timeout_s=30)
    pause = threading.Event()
    while not (here / "state").exists():
        pause.wait(0.05)


def test_a_late_program_is_asked_to_end(here: Path) -> None:
    with pytest.raises(Unavailable, match=r"not finished after 0\.3 s: sh"):
        run_unkilled(["sh", "-c", WAITS], timeout_s=0.3)
    assert (here / "state").read_text() == "stopped\n"


def test_a_late_program_that_cannot_end_is_never_killed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_INTERRUPT_S", 0.1)
    with pytest.raises(Unavailable, match="it goes on"):
        run_unkilled(["sh", "-c", SUSPENDS], timeout_s=0.2)
    pause = threading.Event()
    while not (here / "state").exists():
        pause.wait(0.05)


def test_a_program_that_fails_or_is_missing_is_named(here: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        run_unkilled(["sh", "-c", "echo wrong >&2; exit 5"], timeout_s=30)
    assert (caught.value.message[:11], caught.value.hint) == ("exit code 5", "wrong")
    with pytest.raises(Unavailable, match="no-such-program is not installed"):
        run_unkilled(["no-such-program"], timeout_s=30)


def test_a_program_that_may_not_be_run_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "psql").write_text("no program")
    monkeypatch.setenv("PATH", str(here))
    with pytest.raises(Unavailable, match="psql cannot be run: Permission denied"):
        run(["psql"])
    with pytest.raises(Unavailable, match="psql cannot be run: Permission denied"):
        run_unkilled(["psql"], timeout_s=5)
