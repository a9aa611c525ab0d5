# SPDX-License-Identifier: GPL-2.0-only
"""`status` works with and without a daemon, and never shows unknown as zero."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ebbgate.cli import daemon_status
from ebbgate.errors import PermissionDenied
from ebbgate.intents.client import Busy
from ebbgate.intents.protocol import Greeting
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.store.db import Store
from tests.builders import journal_entry, live_document
from tests.fake_dm import CACHE_UUID, fake_lvm
from tests.lab import host
from tests.unit.conftest import BOOT_ID, NOW_NS, Cli

WIDTH = 80


def test_without_a_daemon_the_kernels_own_files_are_shown(cli: Cli) -> None:
    result = cli("status")
    assert result.code == 0
    assert "bcache0  bcache writeback - no daemon" in result.out
    assert "420 MiB" in result.out
    assert "dirty; not managed by ebbgated, the kernel's settings apply" in result.out
    assert (
        "ebbgated is not running: nothing is measured; start it: systemctl start ebbgated"
        in result.out
    )


def test_with_a_daemon_its_status_is_shown(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(now="Writing back 420 MiB at 41 MiB/s"), NOW_NS)
        store.set_live("", {"version": "0.1.0", "probe": {"kind": "ebpf", "state": "running"}}, 1)
        result = cli("status")
    assert "bcache0  bcache writeback - enforce, gap" in result.out
    assert "Writing back 420 MiB at 41 MiB/s" in result.out
    assert "paced 40 MiB/s" in result.out
    assert f"daemon 0.1.0 (pid {os.getpid()}), probe ebpf: running" in result.out


def test_whose_requests_missed_the_cache_is_shown(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS)
        lines = [" ".join(line.split()) for line in cli("status", "bcache0").out.splitlines()]
        start = lines.index("MISSED BY READS/MIN WRITES/MIN") + 1
        assert lines[start : start + 5] == [
            "cgroup /system.slice/postgresql.service 1500 100",
            "cgroup /user.slice 350 0",
            "file /srv/db/big 1200 100",
            "file inode 131 on 252:0 500 0",
            "file unknown (direct I/O, metadata) 150 0",
        ]
        store.set_live("bcache0", live_document(attribution={"why": "no record"}), NOW_NS)
        assert "MISSED BY" not in cli("status", "bcache0").out


def test_a_volume_is_found_by_its_uuid_which_status_shows(cli: Cli) -> None:
    uuid = "0b1e5000-0000-4000-8000-000000000001"
    assert uuid in cli("status", "bcache0").out
    (found,) = json.loads(cli("status", uuid, "--json").out)["volumes"]
    assert (found["volume"], found["uuid"]) == ("bcache0", uuid)


def test_only_the_first_of_many_jobs_are_shown(cli: Cli) -> None:
    jobs = [{"id": 3, "target": "/srv/a", "state": "done"}]
    jobs += [{"id": 4 + n, "target": f"/srv/{n}", "state": "waiting"} for n in range(7)]
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(jobs=jobs), NOW_NS)
        out = cli("status", "bcache0").out
    shown = [f"job {number}" for number in range(3, 11) if f"job {number}," in out]
    assert shown == ["job 4", "job 5", "job 6", "job 7"]
    assert "and 3 more jobs: ebbgate jobs" in out


def test_lost_history_records_are_reported(cli: Cli) -> None:
    history = {"written": True, "dropped": 12, "trouble": {"why": "database or disk is full"}}
    with cli.daemon() as store:
        store.set_live("", {"version": "0.1.0", "history": history}, NOW_NS)
        out = " ".join(cli("status").out.split())
    assert "12 records of the history were lost" in out
    assert "(database or disk is full)" in out


@pytest.mark.parametrize("words", [("status",), ("doctor",)])
def test_a_long_reader_of_the_history_is_reported(cli: Cli, words: tuple[str, ...]) -> None:
    log = {"bytes": 9 << 20, "held_since_unix_ns": 7, "held_by": "python3 (pid 12, uid 33)"}
    history = {"written": True, "dropped": 0, "trouble": None, "log": log}
    with cli.daemon() as store:
        store.set_live("", {"version": "0.1.0", "history": history}, NOW_NS)
        out = " ".join(cli(*words).out.split())
        text = "python3 (pid 12, uid 33) keeps reading the history: its log has grown to 9 MiB."
        assert text in out
        store.set_live("", {"history": {**history, "log": {**log, "held_since_unix_ns": None}}}, 1)
        assert "keeps reading" not in cli(*words).out


def test_the_policy_and_its_schedule_entry_are_shown(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(policy="nas", overlay="night"), NOW_NS)
        status, explain = cli("status").out, cli("explain", "bcache0").out
    assert "bcache0  bcache writeback - enforce, policy nas (night), gap" in status
    assert "bcache0  enforce, policy nas (night)" in explain


@pytest.mark.parametrize(
    ("kept", "text"), [(True, "the last valid ones apply"), (False, "nothing is tuned until")]
)
def test_policy_errors_are_listed(cli: Cli, kept: bool, text: str) -> None:
    policies = {"folder": "/etc/ebbgate/policies.d", "names": [], "kept": kept}
    problems = ["/etc/ebbgate/policies.d/a.yaml:3:1: nmae: no such key; did you mean name?"]
    with cli.daemon() as store:
        store.set_live(
            "", {"version": "0.1.0", "policies": {**policies, "problems": problems}}, NOW_NS
        )
        out = " ".join(cli("status").out.split())
    assert text in out
    assert problems[0] in out


def test_keys_without_effect_are_listed(cli: Cli) -> None:
    note = "/etc/ebbgate/policies.d/a.yaml:3:1: queue_target: has no effect on bcache"
    with cli.daemon() as store:
        store.set_live("", {"version": "0.2.0", "policies": {"notes": [note]}}, NOW_NS)
        assert note in " ".join(cli("status").out.split())


GARBLED = {
    "mode": "brave",
    "gate": {"kind": "ajar"},
    "foreground": [],
    "paths": [{}],
    "knobs": {"writeback_percent": 40},
    "overrides": [{}],
    "proposals": 7,
    "missing": [],
    "lost": None,
    "kernel_sleep": "long",
    "totals": {"paths": 3},
}


@pytest.mark.parametrize("garbled", [{}, GARBLED, {"wishes": 3, "in_use_ratio": "much"}])
@pytest.mark.parametrize("daemon", [{}, {"pid": "x", "history": 3, "probe": [], "policies": {}}])
def test_a_status_of_another_version_is_read_as_far_as_possible(
    cli: Cli, garbled: dict[str, object], daemon: dict[str, object]
) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", garbled, NOW_NS)
        store.set_live("", daemon, NOW_NS)
        for words in (("status",), ("status", "bcache0"), ("explain", "bcache0"), ("doctor",)):
            assert "bcache0  " in cli(*words).out
        (volume,) = cli("status", "--json").document["volumes"]
    assert (volume["live"], volume["mode"], volume["gate"]) == (True, None, None)
    # What the daemon did not say is read from sysfs.
    assert volume["dirty_bytes"] > 0
    assert volume["knobs"]["writeback_percent"]["value"] == "10"


def test_a_hanging_daemon_is_reported(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS - 6_000_000_000)
        result = cli("status", "--json")
    (volume,) = result.document["volumes"]
    assert (volume["live"], volume["mode"]) == (False, None)


def test_old_status_of_a_dead_daemon_is_not_shown(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS)
    (volume,) = cli("status", "--json").document["volumes"]
    assert (volume["live"], volume["mode"]) == (False, None)


def test_knobs_left_by_a_dead_daemon_are_reported(cli: Cli) -> None:
    with cli.daemon():
        cli.journal(
            journal_entry(boot_id=BOOT_ID, original="10"),
            journal_entry("writeback_delay", boot_id="an older boot"),
        )
        assert "still have values from ebbgate" not in cli("status").out
    result = cli("status")
    assert "1 knobs still have values from ebbgate; restore them: ebbgate restore" in result.out
    (volume,) = cli("status", "--json").document["volumes"]
    assert volume["knobs"]["writeback_percent"]["owner"] == "left behind"
    assert volume["knobs"]["writeback_percent"]["original"] == "10"


def _no_right(path: Path, timeout_s: float) -> Greeting:
    raise PermissionDenied(f"no access to {path}", "ask root")


def test_without_socket_access_the_history_shows_whether_a_daemon_runs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_status, "greet", _no_right)
    with closing(Store.open(cli.history)) as store:
        store.set_live("", {"version": "0.1.0", "pid": 815}, NOW_NS - 4_000_000_000)
        store.set_live("bcache0", live_document(), NOW_NS)
        fresh = cli("status", "--json").document
        cli.now_ns += 2_000_000_000
        old = cli("status", "--json").document
    assert (fresh["daemon"]["alive"], fresh["daemon"]["pid"]) == (True, 815)
    assert fresh["volumes"][0]["live"] is True
    assert (old["daemon"]["alive"], old["daemon"]["pid"]) == (False, None)
    assert old["volumes"][0]["live"] is False


def test_a_daemon_whose_connections_are_all_in_use_is_alive(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, timeout_s: float) -> Greeting:
        raise Busy("too many connections", "wait")

    monkeypatch.setattr(daemon_status, "greet", full)
    with closing(Store.open(cli.history)) as store:
        store.set_live("bcache0", live_document(), NOW_NS)
        document = cli("status", "--json").document
    assert (document["daemon"]["alive"], document["daemon"]["answers"]) == (True, True)


def test_stored_text_is_shown_without_control_characters(cli: Cli) -> None:
    hostile = "x\x1b[2J\x9b1m\u202ey [red]z[/red]"
    override = {"kind": "hold", "knob": None, "value": None, "who": hostile, "left_ns": None}
    policies = {"problems": [hostile], "folder": hostile, "names": [hostile], "kept": True}
    with cli.daemon() as store:
        store.set_live("", {"version": hostile, "policies": policies}, NOW_NS)
        document = live_document(title=hostile, now=hostile, policy=hostile, overrides=[override])
        store.set_live("bcache0", document, NOW_NS)
        for words in (("status",), ("status", "bcache0"), ("explain", "bcache0"), ("doctor",)):
            for more in ((), ("--json",)):
                out = cli(*words, *more).out
                assert out.replace("\n", "").isprintable(), (words, more, ascii(out))
                assert "[red]" in out


def test_one_volume_is_shown_in_full(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(missing={"gaps": "no probe yet"}), NOW_NS)
        result = cli("status", "/dev/bcache0")
    assert "vda (2 GiB, rotational, mq-deadline)" in result.out
    assert "42% of 1 GiB in use" in result.out
    assert "read 120/s 1.2 MiB/s, write 0/s" in result.out
    assert "returning requests waited 3 ms longer after the last one" in result.out
    assert "hit" in result.out
    assert "writeback_percent" in result.out
    assert "not measured: gaps (no probe yet)" in result.out
    assert "lost: 3 streams" in result.out


def test_the_queue_of_the_disks_is_shown_where_a_policy_makes_it_short(cli: Cli) -> None:
    measured = "bfq, depth 31, shared with sda2 (ext4 on /)"
    queue = {"signal": "queue of the disks", "measured": measured, "comparison": "="}
    asked = {"strategy": "idle_destage", "conditions": [{**queue, "threshold": "", "holds": True}]}
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(proposals=[asked]), NOW_NS)
        out = " ".join(cli("status", "bcache0").out.split())
    assert f"queue of the disks {measured}" in out


def test_knobs_of_the_kernel_are_not_listed(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS)
        assert "sequential_cutoff" not in cli("status", "bcache0").out


@pytest.mark.parametrize("words", [("status",), ("status", "bcache0"), ("doctor",)])
def test_the_narrowest_terminal_ends_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "2")
    assert cli(*words).code == 0


@pytest.mark.parametrize("words", [("status",), ("status", "bcache0")])
def test_it_fits_80_columns(cli: Cli, words: tuple[str, ...]) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(now="a sentence " * 20), NOW_NS)
        lines = cli(*words).out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not [line for line in lines if line.endswith("…")], "a cell was cut"


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_the_uuid_of_a_volume_of_lvm_is_on_one_line_and_whole(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    cli.fake.sysfs = Sysfs(cli.fake.root, fake_lvm(cli.fake))
    lines = cli("status", "vg/data").out.splitlines()
    assert f"  uuid {CACHE_UUID}" in lines
    assert not [line for line in lines if "…" in line]


def test_status_without_volumes_is_explained(cli: Cli) -> None:
    cli.fake.remove("/sys/block/bcache0")
    result = cli("status")
    assert (result.code, "no cached volume found" in result.out) == (0, True)
    assert cli("status", "--json").document["volumes"] == []


def test_a_volume_without_cache_has_nothing_to_tune(cli: Cli) -> None:
    cli.fake.remove("/sys/block/vda/bcache/cache")
    cli.fake.write("/sys/block/vda/bcache/state", "no cache")
    assert "no cache attached: nothing to tune" in cli("status").out


def test_missing_sysfs_values_are_dash_and_null(cli: Cli) -> None:
    cli.fake.remove("/sys/block/bcache0/bcache/dirty_data")
    (volume,) = cli("status", "--json").document["volumes"]
    assert volume["dirty_bytes"] is None
    assert "0 B" not in cli("status").out


def test_json_before_and_after_the_command_is_the_same(cli: Cli) -> None:
    assert cli("--json", "status").out == cli("status", "--json").out


def test_status_does_not_import_daemon_modules() -> None:
    code = "import sys, ebbgate.cli.status, ebbgate.cli.page; print(*sys.modules)"
    loaded = host.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).split()
    assert "ebbgate.cli.status" in loaded
    heavy = ("asyncio", "yaml", "ebbgate.policy.", "ebbgate.actuators.", "ebbgate.doctor.advice")
    assert [name for name in loaded if name.startswith(heavy)] == []
