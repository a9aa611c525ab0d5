# SPDX-License-Identifier: GPL-2.0-only
"""The probe as a child: its records, all ways in which it ends, and its commands."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import time
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path

import pytest

from ebbgate.errors import EbbgateError, PermissionDenied, Unavailable
from ebbgate.model.records import Edge, Hello, ProbeWarning, QueueSample, Record
from ebbgate.probes import ebpf
from ebbgate.probes.ebpf import EbpfProbe, track_command, without_stale
from ebbgate.probes.topology import find
from tests.builders import busy_edge, idle_edge, queue_sample, tick, volume
from tests.fake_dm import WRITECACHE, lvm_disks, lvm_machine
from tests.waiting import until

HELLO = '{"t":"hello","ns":1,"protocol":1,"probe":"ebpf","version":"1","boot_id":"b","signals":{}}'
EDGE = '{"t":"edge","ns":%d,"vol":"bcache0","edge":"idle","idle_ns":3}'
DEADLINE_S = 10.0


class ProbeHarness:
    """A probe made of a few lines of shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "probe"
        self.records: list[Record] = []
        self.restarts = 0
        self.on_restart: Callable[[], None] = lambda: None
        self.ends = 0
        self.probe = EbpfProbe(self.program, self.records.append, self._restarted, self._ended)

    def _restarted(self) -> None:
        self.restarts += 1
        self.on_restart()

    def _ended(self) -> None:
        self.ends += 1

    def script(self, body: str) -> None:
        # Its first word is the number of the run, so that a later run may do something else.
        count = self.folder / "runs"
        count.write_text("0")
        self.program.write_text(
            f"#!/bin/sh\nrun=$(($(cat {count}) + 1)); echo $run > {count}\n"
            f"hello() {{ echo '{HELLO}'; }}\nstay() {{ sed -n /quit/q; }}\n{body}\n"
        )
        self.program.chmod(0o755)

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Run the probe until the condition holds, then stop it."""

        async def main() -> None:
            task = asyncio.create_task(self.probe.run())
            deadline = time.monotonic() + DEADLINE_S
            while not condition() and not task.done():
                assert time.monotonic() < deadline, "did not come true"
                await asyncio.sleep(0.002)
            await self.probe.stop(0.5)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return

        asyncio.run(main())
        assert condition()

    def run_to_its_error(self) -> EbbgateError:
        with pytest.raises(EbbgateError) as caught:
            asyncio.run(asyncio.wait_for(self.probe.run(), DEADLINE_S))
        return caught.value


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProbeHarness:
    monkeypatch.setattr(ebpf, "BACKOFF_S", (0.001, 0.002, 0.004))
    monkeypatch.setattr(ebpf, "_EXIT_S", 0.1)
    return ProbeHarness(tmp_path)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


# ---- records ------------------------------------------------------------------------------------
def test_records_come_in_order_and_hello_means_running(harness: ProbeHarness) -> None:
    harness.script(f"hello; echo '{EDGE % 5}'; echo '{EDGE % 6}'; stay")
    harness.run_until(lambda: len(harness.records) == 3)
    assert isinstance(harness.records[0], Hello)
    assert [r.at_ns for r in harness.records[1:] if isinstance(r, Edge)] == [5, 6]
    assert harness.probe.health.hello == harness.records[0]
    assert harness.restarts == 1


def test_signals_that_a_module_brought_replace_those_of_hello(harness: ProbeHarness) -> None:
    told = '{"t":"signals","ns":2,"signals":{"path":"ok"}}'
    harness.script(f"hello; echo '{told}'; stay")
    harness.run_until(lambda: len(harness.records) == 2)
    assert harness.probe.health.status().signals == {"path": "ok"}


def test_a_line_may_come_in_pieces(harness: ProbeHarness) -> None:
    line = EDGE % 7
    harness.script(f"printf '%s' '{line[:20]}'; sleep 0.05; echo '{line[20:]}'; stay")
    harness.run_until(lambda: bool(harness.records))
    assert harness.probe.health.bad_lines == 0


def test_damaged_lines_are_counted_logged_and_skipped(
    harness: ProbeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.script(f"hello; for i in 1 2 3 4 5; do echo '{{'; done; echo '{EDGE % 8}'; stay")
    harness.run_until(lambda: len(harness.records) == 2)
    assert harness.probe.health.bad_lines == 5
    assert sum("damaged record" in text for text in warnings(caplog)) == 3


def test_an_endless_line_restarts_the_probe(
    harness: ProbeHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ebpf, "_LINE_BYTES_MAX", 5000)
    endless = "exec head -c 100000 /dev/zero"
    harness.script(f"[ $run -gt 1 ] || {endless}; hello; stay")
    harness.run_until(lambda: harness.probe.health.state == "running")
    assert harness.restarts == 2
    assert any("over 5000 bytes" in text for text in warnings(caplog))


def test_only_the_newest_waiting_queue_sample_counts() -> None:
    old, new = queue_sample(1, 5), queue_sample(2, 6)
    other = QueueSample("bcache1", 1, 9, 0, 0)
    edge, a_tick = idle_edge(3), tick()
    assert without_stale([old, edge, other, new, a_tick]) == [edge, other, new, a_tick]
    assert without_stale([]) == []


def test_a_queue_sample_before_an_edge_is_dropped() -> None:
    sample, edge = queue_sample(1, 5), busy_edge(3)
    assert without_stale([sample, edge]) == [edge]
    assert without_stale([edge, sample]) == [edge, sample]


# ---- commands -----------------------------------------------------------------------------------
def test_commands_reach_the_probe_as_lines(harness: ProbeHarness) -> None:
    answer = json.dumps({"t": "error", "ns": 1, "text": "read", "cmd": "%s"})
    harness.script(f"hello; while read -r line; do printf '{answer}\\n' \"$line\"; done")
    harness.on_restart = lambda: harness.probe.command("wait bcache0 300")
    harness.run_until(lambda: any(isinstance(r, ProbeWarning) for r in harness.records))
    complaint = next(r for r in harness.records if isinstance(r, ProbeWarning))
    assert complaint.text == "read: wait bcache0 300"


def test_a_command_without_a_probe_is_dropped(harness: ProbeHarness) -> None:
    harness.probe.command("wait bcache0 300")


def test_the_track_command_names_every_device() -> None:
    assert track_command(volume()) == (
        "track bcache0 kind=bcache volume=252:0 cache=254:0 backing=254:0"
    )


def test_the_track_command_has_kind_devices_and_mode(tmp_path: Path) -> None:
    sysfs, _ = lvm_machine(lvm_disks(tmp_path))
    assert track_command(find(sysfs, "vg/data")) == (
        "track vg-data kind=dm-cache volume=253:0 cache=253:2 backing=253:4 mode=writeback"
    )


def test_the_track_command_of_a_writecache_has_no_mode(tmp_path: Path) -> None:
    sysfs, _ = lvm_machine(lvm_disks(tmp_path), WRITECACHE)
    assert track_command(find(sysfs, "vg/data")) == (
        "track vg-data kind=dm-writecache volume=253:0 cache=253:2 backing=253:4"
    )


# ---- how it ends --------------------------------------------------------------------------------
def test_a_dead_probe_is_restarted_with_growing_pauses(
    harness: ProbeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.script("[ $run -gt 4 ] || exit 3; hello; stay")
    harness.run_until(lambda: harness.probe.health.state == "running")
    assert (harness.restarts, harness.probe.health.restarts) == (5, 4)
    pauses = [text.split("again in ")[1].split(" s")[0] for text in warnings(caplog)]
    assert pauses == ["0.001", "0.002", "0.004", "0.004"]
    assert all("exit code 3" in text and "signals are unknown" in text for text in warnings(caplog))


def test_the_end_of_a_probe_is_reported_before_the_pause(
    harness: ProbeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ebpf, "BACKOFF_S", (60.0,))
    harness.script("hello; exit 3")
    harness.run_until(lambda: harness.ends == 1)
    assert harness.restarts == 1


def test_a_killed_probe_is_restarted(harness: ProbeHarness) -> None:
    harness.script("[ $run -gt 1 ] || kill -9 $$; hello; stay")
    harness.run_until(lambda: harness.probe.health.state == "running")
    assert harness.restarts == 2


def test_a_probe_that_closes_its_output_is_killed(harness: ProbeHarness) -> None:
    harness.script("[ $run -gt 1 ] || { exec >&-; exec sleep 60; }; hello; stay")
    harness.run_until(lambda: harness.probe.health.state == "running")
    assert harness.restarts == 2


def test_a_command_to_a_deaf_probe_logs_no_traceback(
    harness: ProbeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    pid = harness.folder / "pid"
    end = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exit 1"
    harness.script(f"[ $run -gt 1 ] || {{ {end}; }}; hello; stay")

    def speak() -> None:
        if harness.restarts == 1:
            until(pid.exists)
            # It has ended, and the loop could not notice yet that there is no reader.
            # A thread of asyncio may be the one that sees it end first.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, int(pid.read_text()), os.WEXITED | os.WNOWAIT)
        harness.probe.command("wait bcache0 300")

    harness.on_restart = speak
    harness.run_until(lambda: harness.probe.health.state == "running")
    gc.collect()
    assert [r for r in caplog.records if r.name == "asyncio"] == []


def test_a_probe_that_cannot_start_is_reported_once(
    harness: ProbeHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.script("exit 70")
    harness.run_until(lambda: "cannot start here" in harness.probe.health.state)
    assert harness.restarts == ebpf.FAILED_STARTS_MAX
    said = [text for text in warnings(caplog) if "cannot start here" in text]
    assert len(said) == 1
    assert "nothing is tuned" in said[0]
    assert "on SIGHUP" in harness.probe.health.state


def test_a_probe_that_cannot_start_is_retried_later(
    harness: ProbeHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ebpf, "RETRY_S", 0.01)
    harness.script("[ $run -gt 5 ] || exit 70; hello; stay")
    harness.run_until(lambda: harness.probe.health.state == "running")
    assert harness.restarts == 6
    assert sum("cannot start here" in text for text in warnings(caplog)) == 1


def test_a_person_can_retry_the_probe_at_once(harness: ProbeHarness) -> None:
    harness.script("[ $run -gt 3 ] || exit 70; hello; stay")

    def running() -> bool:
        if "cannot start here" in harness.probe.health.state:
            harness.probe.retry()
        return harness.probe.health.state == "running"

    harness.probe.retry()
    harness.run_until(running)
    assert harness.restarts == 4


def test_an_internal_error_after_hello_is_no_failed_start(harness: ProbeHarness) -> None:
    harness.script("[ $run -gt 5 ] || { hello; exit 70; }; hello; stay")
    harness.run_until(lambda: harness.restarts == 6 and harness.probe.health.state == "running")


@pytest.mark.parametrize(
    ("code", "error", "exit_code", "why"),
    [
        (64, Unavailable, 69, "it refused its arguments"),
        (69, Unavailable, 69, "the kernel lacks what it needs"),
        (77, PermissionDenied, 77, "run as root"),
    ],
)
def test_a_fatal_exit_is_an_error_with_the_next_step(
    harness: ProbeHarness, code: int, error: type[EbbgateError], exit_code: int, why: str
) -> None:
    harness.script(f"exit {code}")
    caught = harness.run_to_its_error()
    assert isinstance(caught, error)
    assert caught.exit_code == exit_code
    assert why in caught.hint
    assert harness.restarts == 1


def test_a_missing_probe_is_an_error_with_the_next_step(harness: ProbeHarness) -> None:
    caught = harness.run_to_its_error()
    assert isinstance(caught, Unavailable)
    assert "No such file" in caught.message
    assert "make probe" in caught.hint


def test_a_probe_that_cannot_be_run_is_an_error(harness: ProbeHarness) -> None:
    harness.program.write_text("not executable")
    assert "Permission denied" in harness.run_to_its_error().message


def test_another_protocol_version_is_refused_and_its_probe_ended(harness: ProbeHarness) -> None:
    pid = harness.folder / "pid"
    other = HELLO.replace('"protocol":1', '"protocol":2')
    harness.script(f"echo $$ > {pid}; echo '{other}'; exec sleep 60")
    caught = harness.run_to_its_error()
    assert "protocol 2" in caught.message
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


# ---- stop ---------------------------------------------------------------------------------------
def test_a_stop_asks_the_probe_to_quit(harness: ProbeHarness) -> None:
    goodbye = harness.folder / "goodbye"
    harness.script(
        f'hello; while read -r line; do [ "$line" = quit ] && touch {goodbye} && exit; done'
    )
    harness.run_until(lambda: bool(harness.records))
    assert goodbye.exists()
    assert harness.restarts == 1


def test_a_probe_that_ignores_quit_is_killed(harness: ProbeHarness) -> None:
    pid = harness.folder / "pid"
    harness.script(f"trap '' TERM; echo $$ > {pid}; hello; exec sleep 60")
    began = time.monotonic()
    harness.run_until(lambda: bool(harness.records))
    assert time.monotonic() - began < DEADLINE_S
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_probe_that_hangs_in_the_kernel_delays_a_stop_for_a_moment_only(
    harness: ProbeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ebpf, "_HANG_S", 0.1)
    hangs = list[Process]()
    kill = Process.kill

    def survive(process: Process) -> None:
        hangs.append(process)

    monkeypatch.setattr(Process, "kill", survive)
    harness.script("trap '' TERM; hello; exec sleep 60")

    async def main() -> float:
        task = asyncio.create_task(harness.probe.run())
        while not harness.records:
            await asyncio.sleep(0.002)
        began = time.monotonic()
        await harness.probe.stop(0.1)
        task.cancel()
        await asyncio.wait({task})
        took_s = time.monotonic() - began
        kill(hangs[0])
        await hangs[0].wait()
        return took_s

    assert asyncio.run(main()) < DEADLINE_S


def test_a_stop_during_a_pause_starts_no_probe(
    harness: ProbeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ebpf, "BACKOFF_S", (60.0,))
    harness.script("exit 1")
    harness.run_until(lambda: harness.probe.health.restarts == 1)
    assert harness.restarts == 1
    assert harness.probe.health.state == "down: exit code 1"
