# SPDX-License-Identifier: GPL-2.0-only
"""`doctor` puts signals, cost, knobs and advice together, and changes nothing."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from ebbgate.doctor import cost
from tests.builders import live_document
from tests.fake_sysfs import SET_UUID
from tests.unit.conftest import NOW_NS, Cli
from tests.unit.doctor.test_signals import HELLO, program


@pytest.fixture(autouse=True)
def probe(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = program(tmp_path, json.dumps(HELLO))
    monkeypatch.setenv("EBBGATE_PROBE", str(path))
    cli.fake.write("/sys/kernel/btf/vmlinux", "")
    return path


def test_the_doctor_page_has_every_part(cli: Cli) -> None:
    out = cli("doctor").out
    assert "path    missing: the bcache module is not loaded" in out
    assert "no probe is running" in out
    assert "ebbgated is not running: nothing is measured" in out
    assert "bcache0  bcache writeback, dirty - not managed" in out
    assert "EBB-205 Info: bcache0 bypasses the cache after reads above 2000 us" in out


def test_every_knob_shows_whether_ebbgate_may_write_it(cli: Cli) -> None:
    with cli.daemon() as store:
        knobs = {
            "writeback_percent": {"value": "40", "original": "10", "owner": "ebbgate"},
            "sequential_cutoff": {"value": "0", "original": None, "owner": "manual"},
            "cache_mode": {"value": "writeback", "original": None, "owner": "kernel"},
        }
        store.set_live("bcache0", live_document(knobs=knobs), NOW_NS)
        result = cli("doctor", "bcache0")
        rows = cli("doctor", "--json").document["volumes"][0]["knobs"]
    touch = {row["name"]: row["touch"] for row in rows}
    assert touch["writeback_percent"] == "tuned"
    assert touch["sequential_cutoff"] == "manual"
    assert touch["cache_mode"] == "shown"
    assert "set by ebbgate; original 10" in result.out
    assert "left alone: changed by someone else" in result.out


def test_a_knob_that_this_kernel_lacks_is_not_listed(cli: Cli) -> None:
    cli.fake.remove("/sys/block/bcache0/bcache/writeback_consider_fragment")
    rows = cli("doctor", "--json").document["volumes"][0]["knobs"]
    assert "writeback_consider_fragment" not in {row["name"] for row in rows}


def test_the_advice_comes_from_the_disk_below(cli: Cli) -> None:
    cli.fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    cli.fake.write("/sys/block/vda/device/queue_depth", "256")
    cli.fake.write("/sys/block/vdb/bcache/discard", "1")
    cli.fake.write("/sys/block/vda/bcache/io_errors", "2")
    rows = cli("doctor", "--json").document["volumes"][0]["advice"]
    assert [row["id"] for row in rows] == ["EBB-208", "EBB-101", "EBB-103", "EBB-205", "EBB-207"]
    assert [row["severity"] for row in rows] == ["Problem", "Recommended", "Info", "Info", "Info"]
    assert rows[1]["command"] == "echo mq-deadline | sudo tee /sys/block/vda/queue/scheduler"
    assert rows[1]["keep"].endswith('ATTR{queue/scheduler}="mq-deadline"')


def test_a_command_is_one_line_however_narrow_the_terminal_is(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    cli.fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    advice = cli("doctor", "--json").document["volumes"][0]["advice"]
    lines = [line.strip() for line in cli("doctor").out.splitlines()]
    copied = [row[key] for row in advice for key in ("command", "keep") if row[key]]
    assert max(map(len, copied)) > 80
    for each in copied:
        assert each in lines


def test_advice_on_a_disk_comes_with_its_undo(cli: Cli) -> None:
    cli.fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    lines = [line.strip() for line in cli("doctor").out.splitlines()]
    assert (
        lines[lines.index("To undo:") + 1] == "echo none | sudo tee /sys/block/vda/queue/scheduler"
    )


@pytest.mark.parametrize(
    ("vendor", "model", "severity"),
    [
        ("ATA     ", "ST4000DM000", "Recommended"),
        ("DELL    ", "PERC H730 Mini", "Info"),
        ("QEMU    ", "QEMU HARDDISK", "Info"),
    ],
)
def test_the_kind_of_disk_comes_from_its_vendor_and_model(
    cli: Cli, vendor: str, model: str, severity: str
) -> None:
    cli.fake.disk("sda", "8:0", queue_depth=256)
    cli.fake.partition("sda", "sda3", "8:3")
    cli.fake.write("/sys/block/sda/device/vendor", vendor)
    cli.fake.write("/sys/block/sda/device/model", model)
    cli.fake.bcache("bcache1", backing="sda3", devno="252:1", cache=None)
    (found,) = [
        row
        for row in cli("doctor", "--json", "bcache1").document["volumes"][0]["advice"]
        if row["id"] == "EBB-103"
    ]
    assert (found["about"], found["severity"]) == ("sda", severity)


def test_values_written_by_ebbgate_cause_no_advice(cli: Cli) -> None:
    names = ("congested_read_threshold_us", "congested_write_threshold_us")
    stock = {
        name: {"value": value, "original": None, "owner": "kernel"}
        for name, value in zip(names, ("2000", "20000"), strict=True)
    }
    for name in names:
        cli.fake.write(f"/sys/fs/bcache/{SET_UUID}/{name}", "0")
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(knobs=stock), NOW_NS)
        rows = cli("doctor", "--json").document["volumes"][0]["advice"]
    assert [row["id"] for row in rows] == ["EBB-205"]


def test_the_status_is_read_after_the_measurement(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cli.daemon() as store:

        def measure(proc: Path, seconds: float) -> cost.Cost:
            store.set_live("bcache0", live_document(mode="observe"), NOW_NS)
            return cost.read(proc)

        monkeypatch.setattr(cost, "measure", measure)
        document = cli("doctor", "--measure", "2", "--json").document
    assert document["volumes"][0]["mode"] == "observe"


def test_doctor_writes_no_file(cli: Cli, tmp_path: Path) -> None:
    def contents() -> dict[Path, bytes]:
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        return {path: path.read_bytes() for path in files}

    before = contents()
    cli("doctor")
    cli("doctor", "--knobs", "bcache0")
    assert contents() == before


def test_doctor_without_root_shows_the_rest(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.euid = 1000
    assert cli("doctor").code == 0
    assert cli("doctor", "--json").document["root"] is False


def test_missing_btf_and_missing_probe_are_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EBBGATE_PROBE", "/no/such/probe")
    cli.fake.remove("/sys/kernel/btf/vmlinux")
    out = cli("doctor").out
    assert "there is no /no/such/probe: install it, or run make probe" in out
    assert "this kernel has no BTF type information (CONFIG_DEBUG_INFO_BTF)" in out


def test_the_bcc_probe_is_named_without_btf(cli: Cli, probe: Path) -> None:
    cli.fake.remove("/sys/kernel/btf/vmlinux")
    program(probe.parent, json.dumps({**HELLO, "probe": "bcc"}))
    out = cli("doctor").out
    assert "  this kernel has no BTF type information: the bcc probe runs\n" in out
    assert "  it does not tell which cgroups and files miss the cache\n" in out
    assert cli("doctor", "--json").document["probe"]["kind"] == "bcc"


def test_a_locked_down_kernel_is_reported_in_one_line(cli: Cli) -> None:
    assert cli("doctor", "--json").document["kernel"]["lockdown"] is None
    cli.fake.write("/sys/kernel/security/lockdown", "[none] integrity confidentiality")
    assert cli("doctor", "--json").document["kernel"]["lockdown"] is None
    cli.fake.write("/sys/kernel/security/lockdown", "none [integrity] confidentiality")
    assert cli("doctor", "--json").document["kernel"]["lockdown"] == "integrity"
    assert "  this kernel is locked down (lockdown=integrity)\n" in cli("doctor").out


def test_it_fits_80_columns(cli: Cli) -> None:
    lines = cli("doctor", "--knobs").out.splitlines()
    copied = ("      echo ", "      sudo ", "      ACTION")
    assert max(len(line) for line in lines if not line.startswith(copied)) <= 80
    assert not [line for line in lines if line.endswith("…")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_measurement_that_a_signal_ends_switches_the_counting_off(
    cli: Cli, number: signal.Signals
) -> None:
    """Counting costs each run of each BPF program some time, for ever if it stays on."""
    switch = cli.proc / "sys/kernel/bpf_stats_enabled"
    switch.write_text("0\n")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), number))
    before = signal.signal(number, signal.SIG_DFL)
    timer.start()
    try:
        with pytest.raises(SystemExit) as ended:
            cli("doctor", "--measure", "20")
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert ended.value.code == 128 + number
    assert switch.read_text() == "0\n"


def test_a_measurement_leaves_a_signal_that_is_ignored_ignored(cli: Cli) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGHUP)).start()
    try:
        assert cli("doctor", "--measure", "0.5").code == 0
    finally:
        signal.signal(signal.SIGHUP, before)
