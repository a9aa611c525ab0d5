# SPDX-License-Identifier: GPL-2.0-only
"""Without root, unknown parts of advice and report are named with the reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ebbgate.doctor import unprivileged
from ebbgate.doctor.remedy import ApplyRequest
from ebbgate.doctor.unprivileged import FreshStatus
from ebbgate.kernel.device_mapper import DeviceMapper
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.status import DaemonStatus, ProbeStatus
from ebbgate.units import NS_PER_S
from tests.builders import live_status
from tests.fake_dm import FakeCache, fake_lvm
from tests.fake_sysfs import FakeSysfs, fake_bcache
from tests.without_rights import without_rights

DAEMON = DaemonStatus(
    probe=ProbeStatus("ebpf", "running", signals={"path": "ok", "heat": "no"}),
)
FOLLOWED = FreshStatus(DAEMON, {"bcache0": live_status(knobs={})})
"""ebbgated runs and has set nothing."""


@pytest.fixture
def fake(open_folder: Path) -> FakeSysfs:
    made = fake_bcache(open_folder / "sys")
    made.write("/sys/kernel/btf/vmlinux", "")
    return made


def ids(document: dict[str, Any]) -> list[str]:
    return [row["id"] for row in document["advice"]]


# ---- advice -------------------------------------------------------------------------------------
def test_without_rights_the_advice_on_a_bcache_volume_is_the_same(fake: FakeSysfs) -> None:
    fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    fake.write("/sys/block/vda/bcache/io_errors", "2")
    mine = unprivileged.advice(fake.sysfs, FOLLOWED)
    theirs = without_rights(lambda: unprivileged.advice(fake.sysfs, FOLLOWED))
    assert theirs == mine
    assert ids(theirs) == ["EBB-208", "EBB-101", "EBB-205", "EBB-206"]
    assert theirs["unknown"] == []


def test_an_advice_shows_whether_it_can_be_applied_and_undone(fake: FakeSysfs) -> None:
    fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    fake.write("/sys/block/vda/queue/scheduler", "mq-deadline [none]")
    rows = {row["id"]: row for row in unprivileged.advice(fake.sysfs, FOLLOWED)["advice"]}
    assert (rows["EBB-206"]["can_apply"], rows["EBB-206"]["why_not"]) == (True, None)
    assert rows["EBB-206"]["undo"] == "ebbgate release bcache0 sequential_cutoff"
    assert rows["EBB-101"]["can_apply"] is False
    assert rows["EBB-101"]["why_not"] == "ebbgate cannot do this: run the command"
    assert rows["EBB-101"]["undo"] == "echo none | sudo tee /sys/block/vda/queue/scheduler"


def test_in_enforce_a_knob_of_the_gate_cannot_be_applied(fake: FakeSysfs) -> None:
    fake.write("/sys/block/bcache0/bcache/writeback_percent", "39")
    knobs = {"writeback_percent": {"value": "39", "original": None, "owner": "manual"}}
    status = FreshStatus(DAEMON, {"bcache0": live_status(mode="enforce", knobs=knobs)})
    (row,) = (r for r in unprivileged.advice(fake.sysfs, status)["advice"] if r["id"] == "EBB-209")
    assert row["can_apply"] is False
    assert "ebbgate tunes writeback_percent already" in row["why_not"]


def test_what_the_daemon_measures_is_the_evidence(fake: FakeSysfs) -> None:
    live = live_status(knobs={}, bypass_bytes={"congested": 4096})
    rows = unprivileged.advice(fake.sysfs, FreshStatus(DAEMON, {"bcache0": live}))["advice"]
    (row,) = (row for row in rows if row["id"] == "EBB-205")
    assert row["evidence"] == ["4 KiB bypassed the cache for this reason in the last second"]


def test_a_value_set_by_ebbgate_gets_no_advice(fake: FakeSysfs) -> None:
    fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    knobs = {"sequential_cutoff": {"value": "0", "original": "4194304", "owner": "ebbgate"}}
    status = FreshStatus(DAEMON, {"bcache0": live_status(knobs=knobs)})
    assert "EBB-206" not in ids(unprivileged.advice(fake.sysfs, status))


def test_a_value_that_a_killed_daemon_may_have_left_gets_no_advice(fake: FakeSysfs) -> None:
    """The command would lose the original: only root can see that there is one."""
    fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    fake.write("/sys/block/vda/bcache/io_errors", "2")
    found = unprivileged.advice(fake.sysfs, FreshStatus())
    assert ids(found) == ["EBB-208"]
    (row,) = found["unknown"]
    assert row["volume"] == "bcache0"
    assert "no advice on these; run ebbgate doctor as root" in row["why"]
    report = unprivileged.doctor(fake.sysfs, Path("/proc"), FreshStatus())
    assert {knob["owner"] for knob in report["volumes"][0]["knobs"]} == {"unknown"}


# ---- what was applied ---------------------------------------------------------------------------
def override(knob: str, value: str, at_s: float, kind: str = "set") -> dict[str, Any]:
    since_ns = round(at_s * NS_PER_S)
    return {"kind": kind, "knob": knob, "value": value, "who": "jo", "since_unix_ns": since_ns}


def request(advice: str, at_s: float, volume: str = "bcache0") -> ApplyRequest:
    at_ns = round(at_s * NS_PER_S)
    return ApplyRequest(advice, volume, "jo", at_ns, at_ns + NS_PER_S)


def undoable(
    fake: FakeSysfs, overrides: list[dict[str, Any]], *requests: ApplyRequest
) -> list[tuple[str, list[str]]]:
    """The advice that the page can undo, each with the knobs that it would release."""
    status = FreshStatus(DAEMON, {"bcache0": live_status(knobs={}, overrides=overrides)})
    rows = unprivileged.advice(fake.sysfs, status, requests)["applied"]
    return [(row["id"], [each["knob"] for each in row["knobs"]]) for row in rows]


CUTOFF, READ, WRITE = (
    "sequential_cutoff",
    "congested_read_threshold_us",
    "congested_write_threshold_us",
)


def test_an_applied_advice_is_undone_by_its_own_knobs_alone(fake: FakeSysfs) -> None:
    """Undo released every override of the volume, and stood before Apply."""
    overrides = [
        override("writeback_percent", "30", 50.0),
        override(READ, "0", 100.5),
        override(WRITE, "0", 100.5),
        override(CUTOFF, "4194304", 200.5),
        override("writeback_rate_minimum", "64", 200.6),
    ]
    asked = (request("EBB-206", 200.0), request("EBB-205", 100.0))
    expected = [("EBB-206", [CUTOFF]), ("EBB-205", [READ, WRITE])]
    assert undoable(fake, overrides, *asked) == expected
    assert undoable(fake, overrides) == []
    assert undoable(fake, [], *asked) == []


def test_released_or_changed_knobs_are_not_undone(fake: FakeSysfs) -> None:
    half = [override(READ, "0", 100.5), override(WRITE, "5000", 900.0)]
    assert undoable(fake, half, request("EBB-205", 100.0)) == [("EBB-205", [READ])]
    held = [override("", "", 100.5, kind="hold")]
    assert undoable(fake, held, request("EBB-205", 100.0)) == []
    assert undoable(fake, half, request("EBB-205", 100.0, "bcache7")) == []


def test_an_advice_that_was_applied_twice_is_shown_once(fake: FakeSysfs) -> None:
    overrides = [override(CUTOFF, "4194304", 100.5)]
    asked = (request("EBB-206", 100.4), request("EBB-206", 99.8))
    assert undoable(fake, overrides, *asked) == [("EBB-206", [CUTOFF])]


# ---- what it may not look at --------------------------------------------------------------------
def test_a_file_that_is_closed_is_unknown_and_not_fine(fake: FakeSysfs) -> None:
    fake.write("/sys/block/bcache0/bcache/sequential_cutoff", "0")
    closed = fake.sysfs.locate("/sys/block/bcache0/bcache/sequential_cutoff")
    closed.chmod(0o600)
    theirs = without_rights(lambda: unprivileged.advice(fake.sysfs, FOLLOWED))
    if os.geteuid() == 0:
        assert "EBB-206" in ids(unprivileged.advice(fake.sysfs, FOLLOWED))
    assert "EBB-206" not in ids(theirs)
    (row,) = theirs["unknown"]
    assert row["volume"] == "bcache0"
    assert "may not read /sys/block/bcache0/bcache/sequential_cutoff: run" in row["why"]


def test_a_hidden_dm_volume_is_named_if_the_daemon_follows_it(
    fake: FakeSysfs, open_folder: Path
) -> None:
    sysfs = Sysfs(fake.root, closed_control(open_folder))
    live = live_status(volume="vg-data", title="vg/data", kind="dm-cache")
    status = FreshStatus(DAEMON, {**FOLLOWED.volumes, "vg-data": live})
    theirs = without_rights(lambda: unprivileged.advice(sysfs, status))
    assert {row["about"] for row in theirs["advice"]} == {"bcache0"}
    assert theirs["unknown"] == [
        {
            "volume": "vg-data",
            "title": "vg/data",
            "why": "only root can query device-mapper: run ebbgate doctor vg/data",
        }
    ]


def test_without_a_daemon_hidden_dm_volumes_are_unknown(fake: FakeSysfs, open_folder: Path) -> None:
    sysfs = Sysfs(fake.root, closed_control(open_folder))
    rows = without_rights(lambda: unprivileged.advice(sysfs, FreshStatus()))["unknown"]
    (row,) = (row for row in rows if row["volume"] is None)
    assert "is not known" in row["why"]


def closed_control(folder: Path) -> DeviceMapper:
    control = folder / "control"
    control.write_text("")
    control.chmod(0o600)
    return DeviceMapper(control)


def test_with_access_to_device_mapper_its_volumes_get_advice(fake: FakeSysfs) -> None:
    machine = fake_lvm(fake, FakeCache(threshold=40960))
    status = FreshStatus(DAEMON, {"vg-data": live_status(volume="vg-data", knobs={})})
    rows = unprivileged.advice(Sysfs(fake.root, machine), status)["advice"]
    (row,) = (row for row in rows if row["id"] == "EBB-305")
    assert (row["title"], row["can_apply"]) == ("vg/data", False)
    assert "EBB-305 is an LVM command, which the daemon does not run" in row["why_not"]
    assert row["undo"] == "lvchange --cachesettings migration_threshold=default vg/data"


# ---- the report ---------------------------------------------------------------------------------
def test_the_report_names_signals_cost_and_what_is_missing(fake: FakeSysfs, tmp_path: Path) -> None:
    document = unprivileged.doctor(fake.sysfs, tmp_path, FreshStatus(DAEMON))
    assert document["signals"] == {"path": "ok", "heat": "no"}
    assert document["cost"]["why"] == "no probe is running"
    assert document["missing"] == ["heat: no", "cost per event: no probe is running"]
    (volume,) = document["volumes"]
    assert (volume["volume"], volume["backing"]["name"]) == ("bcache0", "vda")


def test_without_a_daemon_signals_are_unknown_and_not_fine(fake: FakeSysfs, tmp_path: Path) -> None:
    document = unprivileged.doctor(fake.sysfs, tmp_path, FreshStatus())
    assert document["signals"] == {}
    assert document["probe"]["why"] == "ebbgated is not running: nothing is measured"
    assert (
        "signals: ebbgated is not running: nothing is measured; start it" in document["missing"][0]
    )


def test_without_rights_a_knob_is_tuned_all_the_same(fake: FakeSysfs, open_folder: Path) -> None:
    theirs = without_rights(lambda: unprivileged.doctor(fake.sysfs, open_folder, FreshStatus()))
    touch = {knob["name"]: knob["touch"] for knob in theirs["volumes"][0]["knobs"]}
    assert touch["writeback_percent"] == "tuned"
    assert "read-only" not in touch.values()


def test_what_a_probe_costs_is_unknown_without_rights(fake: FakeSysfs, open_folder: Path) -> None:
    (open_folder / "proc/4711").mkdir(parents=True)
    (open_folder / "proc/4711/comm").write_text("ebbgate-probe\n")
    (open_folder / "proc/4711/fdinfo").mkdir(mode=0o500)
    theirs = without_rights(
        lambda: unprivileged.doctor(fake.sysfs, open_folder / "proc", FreshStatus(DAEMON))
    )
    assert theirs["cost"]["ns_per_run"] is None
    assert theirs["cost"]["why"] == "only root can see the probe's programs: run this as root"
