# SPDX-License-Identifier: GPL-2.0-only
"""Signals to a script of lvm-scripts at any moment. I/O: processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from random import Random
from threading import Timer

LIB = Path(__file__).resolve().parents[2] / "lvm-scripts" / "lib.sh"
SIGNALS = 150
STEPS = f"""
. {LIB}
begin
echo ready
while :; do
    uninterrupted sh -c : || echo hit
    if ((interrupted)); then
        interrupted=0
        echo noted
    fi
done
"""


def test_no_signal_interrupts_a_step_and_none_is_lost() -> None:
    """The signal goes to the whole process group, as from a terminal, while steps run."""
    random = Random(1)
    # A shell cannot trap a signal that was ignored when it started.
    argv = ["env", "--default-signal=INT,TERM,HUP", "bash", "-c", STEPS]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        # If a signal is lost, readline() would wait for ever.
        late = Timer(60, process.kill)
        late.start()
        try:
            assert process.stdout.readline() == "ready\n"
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * (SIGNALS // 3):
                # At a random moment.
                time.sleep(random.uniform(0.0, 0.004))
                os.killpg(process.pid, number)
                assert process.stdout.readline() == "noted\n"
        finally:
            late.cancel()
            os.killpg(process.pid, signal.SIGKILL)


READS = f"""
. {LIB}
begin
undo "not undone" "echo undone"
echo ready
while ((SECONDS < 3)); do
    name=$(basename "$(echo a/b)")
    [[ $name == b ]] || echo "wrong: $name"
done
stop_if_interrupted
"""


def test_a_signal_while_the_shell_reads_a_substitution_ends_the_script_as_usual() -> None:
    """bash 5.2.15 then reports the trap as a syntax error and exits with 2."""
    random = Random(1)
    argv = ["env", "--default-signal=INT,TERM,HUP", "bash", "-c", READS]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while process.poll() is None:
            # At a random moment.
            time.sleep(random.uniform(0.0005, 0.004))
            process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "undone\n"
        assert process.returncode == 130
