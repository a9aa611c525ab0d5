# SPDX-License-Identifier: GPL-2.0-only
"""The lab's own promises about a running guest: commands, files, processes, loss of the guest."""

from __future__ import annotations

import errno
import re
import shutil
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.lab import channel, emulator, fio, guest_server
from tests.lab import guest as guests
from tests.lab.__main__ import main
from tests.lab.conftest import without_lab
from tests.lab.errors import EXIT_LOST_GUEST, CommandFailed, LabError, LostGuest, NoLab
from tests.lab.guest import CHECKOUT, Guest
from tests.lab.session import Session
from tests.lab.sync_tree import mirror
from tests.lab.wait import wait_until


def running(guest: Session, pid: int) -> bool:
    return guest.run(["test", "-e", f"/proc/{pid}"]).rc == 0


def test_a_stock_kernel_runs_with_btf_and_bcache(guest: Session) -> None:
    assert guest.check("uname -rv").startswith("6.1.0-")
    assert guest.run("test -s /sys/kernel/btf/vmlinux && modprobe bcache").rc == 0


def test_a_command_gives_its_exit_code_and_both_outputs(guest: Session) -> None:
    done = guest.run("echo out; echo err >&2; exit 7")
    assert (done.rc, done.stdout, done.stderr) == (7, "out\n", "err\n")
    with pytest.raises(CommandFailed, match="exit 7"):
        done.check()


def test_a_command_takes_stdin_environment_and_folder(guest: Session) -> None:
    done = guest.run('echo "$(cat) $NAME $PWD"', stdin="a", env={"NAME": "b"}, cwd="/tmp")
    assert done.stdout == "a b /tmp\n"


def test_an_argument_is_not_seen_by_a_shell(guest: Session) -> None:
    assert guest.check(["printf", "%s", "$HOME; *"]) == "$HOME; *"


def test_a_command_past_its_timeout_is_killed_with_its_children(guest: Session) -> None:
    done = guest.run("sleep 600 & echo $!; wait", timeout_s=2)
    assert done.timed_out
    assert done.rc == -signal.SIGKILL
    wait_until(lambda: not running(guest, int(done.stdout)), 10, "the child to be gone")


@pytest.mark.full
def test_a_killed_command_that_does_not_end_is_no_lost_guest(guest: Session) -> None:
    done = guest.run("echo out; setsid sleep 60 & wait", timeout_s=2)
    assert (done.timed_out, done.stdout) == (True, "out\n")
    assert "its pipes are still open" in done.stderr


def test_a_long_command_does_not_keep_a_short_one_waiting(guest: Session) -> None:
    ended: list[int] = []
    thread = threading.Thread(target=lambda: ended.append(guest.run("sleep 3").rc))
    thread.start()
    assert guest.check("echo short") == "short\n"
    assert not ended
    thread.join()
    assert ended == [0]


def test_processes_run_side_by_side_and_can_be_fed_and_signalled(guest: Session) -> None:
    reader = guest.spawn(["cat"], stdin=True)
    sleeper = guest.spawn(["sleep", "600"])
    reader.write("line\n")
    wait_until(lambda: reader.stdout() == "line\n", 10, "cat to repeat the line")
    assert reader.poll() is None
    reader.close_stdin()
    assert reader.wait(10).rc == 0
    assert running(guest, sleeper.pid)
    sleeper.kill(signal.SIGKILL)
    assert sleeper.wait(10).rc == -signal.SIGKILL


def test_files_go_both_ways_unchanged(guest: Session, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    guest.put_file("/tmp/lab-files/data", data)
    assert guest.get_file("/tmp/lab-files/data", tmp_path / "data").read_bytes() == data
    guest.check(["rm", "-r", "/tmp/lab-files"])


def test_an_error_of_the_guests_kernel_arrives_with_its_number(guest: Session) -> None:
    with pytest.raises(OSError, match="No such file") as missing:
        guest.read("/sys/block/none/dev")
    assert missing.value.errno == errno.ENOENT
    with pytest.raises(OSError, match="Invalid argument") as refused:
        guest.write(f"/sys/block/{guest.device('hdd1')}/queue/scheduler", "no-such-scheduler")
    assert refused.value.errno == errno.EINVAL


def test_many_files_are_read_at_once_and_a_missing_one_is_none(guest: Session) -> None:
    paths = ["/proc/sys/kernel/ostype", "/proc/none"]
    assert guest.read_many(paths) == {paths[0]: "Linux", paths[1]: None}


def test_the_guest_writes_to_the_share_and_nowhere_else_on_the_host(guest: Session) -> None:
    guest.check(f"echo x > {guest.share}/result; echo x > /etc/lab-was-here")
    assert (guest.share / "result").read_text() == "x\n"
    assert not Path("/etc/lab-was-here").exists()
    assert guest.run(["touch", str(CHECKOUT / "lab-was-here")]).rc != 0


def test_an_edit_in_the_checkout_shows_in_a_running_guest(guest: Session) -> None:
    file = CHECKOUT / "build" / "lab-edit"
    file.parent.mkdir(exist_ok=True)
    try:
        for text in ("one\n", "two, longer\n"):
            file.write_text(text)
            assert guest.check(["cat", str(file)]) == text
    finally:
        file.unlink()


def test_a_mirrored_folder_is_a_copy_that_follows_on_request(guest: Session) -> None:
    folder = CHECKOUT / "build" / "lab-mirror"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "file"
    try:
        for text in ("one\n", "two, longer\n"):
            file.write_text(text)
            mirror(guest, folder)
            assert guest.check(["cat", str(file)]) == text
            inode = guest.check(["stat", "-c", "%i", str(file)])
            mirror(guest, folder)
            assert guest.check(["stat", "-c", "%i", str(file)]) == inode, "copied without need"
    finally:
        guest.run(["umount", str(folder)])
        shutil.rmtree(folder)


def test_a_wait_that_times_out_names_its_condition() -> None:
    with pytest.raises(LabError, match=r"waited 0\.3 s in vain for a miracle"):
        wait_until(lambda: False, 0.1, "a miracle")


@contextmanager
def kept(guest: Session, name: str) -> Iterator[None]:
    """The shared guest as if `tests.lab up` had booted it."""
    if not isinstance(guest, Guest):
        pytest.skip("the guest is kept by another process already")
    link = guest_server.link_of(name)
    link.unlink(missing_ok=True)
    link.symlink_to(guest.folder)
    relay = guest_server.GuestRelay(guest)
    threading.Thread(target=relay.serve, daemon=True).start()
    try:
        yield
    finally:
        relay.close()
        link.unlink()


def test_two_clients_share_a_kept_guest_and_one_leaves_nothing_behind(guest: Session) -> None:
    with kept(guest, "harness-test"), closing(guest_server.attach("harness-test")) as second:
        with closing(guest_server.attach("harness-test")) as first:
            left = first.spawn(["sleep", "600"])
            assert second.check("hostname") == "lab\n"
            assert first.device("hdd0") == guest.device("hdd0")
            assert running(second, left.pid)
        wait_until(lambda: not running(second, left.pid), 10, "the first client's command to end")


def test_the_command_line_runs_in_a_kept_guest_and_passes_the_exit_code(
    guest: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    with kept(guest, "harness-test"):
        assert main(["--name", "harness-test", "run", "echo hello; exit 7"]) == 7
        assert main(["--name", "harness-test", "status"]) == 0
    assert capfd.readouterr().out.startswith("hello\n")
    assert main(["--name", "harness-test", "status"]) == 1


@pytest.mark.full
def test_a_kernel_panic_is_a_lost_guest_and_not_a_failed_command() -> None:
    started = time.monotonic()
    try:
        with Guest([], memory_mib=512) as doomed:
            with pytest.raises(LostGuest, match=r"sysrq: Trigger a crash[\s\S]*Kernel panic"):
                doomed.run("echo c > /proc/sysrq-trigger", timeout_s=300)
            with pytest.raises(LostGuest):
                doomed.run("true")
    except NoLab as reason:
        without_lab(reason)
    assert EXIT_LOST_GUEST == 69
    assert time.monotonic() - started < 120, "a lost guest must show at once"


@pytest.mark.full
def test_code_may_be_patched_under_load(guest: Session) -> None:
    """The probe's life is that of tracepoints that come and go; QEMU 7.2 hangs here."""
    steady: dict[str, str | int] = {"time_based": 1, "runtime": 60, "numjobs": 2}
    job = fio.Job(f"/dev/{guest.device('ssd0')}", "randread", "4k", options=steady)
    load = fio.start(guest, job, seed=1)
    events = "/sys/kernel/tracing/events/block/enable"
    for _ in range(20):
        guest.check(f"for i in 1 2 3 4 5; do echo 1 > {events}; echo 0 > {events}; done")
    assert load.stop(60).ios > 0, "there was no load any more"


@pytest.mark.full
def test_a_port_of_the_guest_is_reached_from_the_host_and_nothing_the_other_way() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        with Guest([], memory_mib=512, forwards={8000: port}) as guest:
            guest.check("mkdir /run/served; echo here > /run/served/word")
            guest.spawn(["python3", "-m", "http.server", "8000", "--directory", "/run/served"])
            url = f"http://127.0.0.1:{port}/word"
            assert wait_until(lambda: fetched(url), 60, url) == b"here\n"
            host = f"http.client.HTTPConnection('10.0.2.2', {port}, timeout=5).connect()"
            assert guest.run(["python3", "-c", f"import http.client; {host}"]).rc != 0
    except NoLab as reason:
        without_lab(reason)


def fetched(url: str) -> bytes | None:
    with suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
        data: bytes = answer.read()
        return data
    return None


def emulator_instead(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Have a script started instead of the emulator; returns the file where it notes each start."""
    program, starts = folder / "emulator", folder / "starts"
    program.write_text(f"#!/bin/bash\necho start >>{starts}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(emulator, "find", lambda: str(program))
    return starts


LISTEN = r"""
path=$(grep -o 'path=[^,]*/agent' <<<"$*")
exec python3 -c '
import pathlib, socket, sys, time
pathlib.Path(sys.argv[1]).unlink(missing_ok=True)
wire = socket.socket(socket.AF_UNIX)
wire.bind(sys.argv[1])
wire.listen()
time.sleep(600)' "${path#path=}"
"""
"""Takes the connection for the agent, and never says a word."""


@pytest.mark.parametrize(
    ("script", "boots", "why"),
    [
        (LISTEN, 2, r"no answer to 'hello' in 1 s"),
        ("echo 'msix_table_mmio_write: Assertion failed'; exit 1", 2, "no guest at"),
        ("exit 1", 1, "no guest at"),
    ],
    ids=["silent", "aborted", "ended"],
)
def test_a_guest_that_never_answered_is_booted_once_more_and_one_that_ended_is_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    boots: int,
    why: str,
) -> None:
    monkeypatch.setattr(guests, "BOOT_TIMEOUT_S", 1)
    starts = emulator_instead(tmp_path, monkeypatch, script)
    try:
        with pytest.raises(LostGuest, match=why):
            Guest([]).start()
    except NoLab as reason:
        without_lab(reason)
    assert starts.read_text().count("start") == boots
    said = capsys.readouterr().err.splitlines()
    assert len(said) == boots - 1
    assert all(re.match(f"lab: the guest is booted once more: {why}", line) for line in said)


@pytest.mark.full
def test_a_boot_after_a_silent_one_gives_a_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guests, "BOOT_TIMEOUT_S", 60)
    try:
        # With -S its CPUs do not run: on the first start only.
        halted = f'[ $(wc -l <{tmp_path}/starts) = 1 ] && set -- "$@" -S'
        run = f'{halted}\nexec {emulator.find()} "$@"'
        emulator_instead(tmp_path, monkeypatch, run)
        with Guest([], memory_mib=512) as guest:
            assert guest.check("hostname") == "lab\n"
    except NoLab as reason:
        without_lab(reason)
    assert "booted once more" in capsys.readouterr().err


@pytest.mark.full
def test_a_silent_guest_is_forced_to_print_where_it_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "GRACE_S", 5.0)
    # Real-time spinners on both CPUs: no other process runs again, not even the agent.
    hang = (
        "echo -1 > /proc/sys/kernel/sched_rt_runtime_us;"
        "for cpu in 0 1; do taskset -c $cpu chrt -f 99 sh -c 'while :; do :; done' & done; wait"
    )
    try:
        with Guest([], memory_mib=512) as doomed:
            spinning = r"CPU#0 .*CPL=3[\s\S]*Kernel panic[\s\S]*Comm: sh"
            with pytest.raises(LostGuest, match=spinning):
                doomed.run(hang, timeout_s=10)
    except NoLab as reason:
        without_lab(reason)
