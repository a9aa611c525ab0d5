# SPDX-License-Identifier: GPL-2.0-only
"""`replay` runs the policy on a recording, reports damage, and refuses other files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ebbgate.cli.replay import time_by_gate
from ebbgate.model.volume import VolumeState
from ebbgate.probes.recording import header_line, sysfs_line
from ebbgate.units import GIB, MIB, NS_PER_MS, NS_PER_S
from tests.builders import probe_tick
from tests.unit.conftest import Cli

START_NS = 100 * NS_PER_S


def recording(seconds: float = 4.0) -> list[str]:
    """A volume with much dirty data that falls quiet after a second."""
    lines = [header_line("made by a test")]
    for step in range(int(seconds * 4)):
        at_ns = START_NS + step * 250 * NS_PER_MS
        if at_ns == START_NS + NS_PER_S:
            lines.append(edge("idle", at_ns, idle_ns=300 * NS_PER_MS))
        busy = at_ns < START_NS + NS_PER_S
        lines.append(json.dumps(probe_tick(ns=at_ns, state="busy" if busy else "idle")))
        knobs = {"writeback_percent": "10", "sequential_cutoff": "4194304"}
        state = VolumeState(at_ns, "dirty", "writeback", 420 * MIB, GIB, 0.42, knobs)
        lines.append(sysfs_line("bcache0", state))
    return lines


def edge(kind: str, at_ns: int, **fields: int) -> str:
    return json.dumps({"t": "edge", "ns": at_ns, "vol": "bcache0", "edge": kind, **fields})


def keep(tmp_path: Path, lines: list[str]) -> str:
    path = tmp_path / "monday.jsonl"
    path.write_text("\n".join(lines))
    return str(path)


def test_the_gate_opens_in_the_gap(cli: Cli, tmp_path: Path) -> None:
    document = cli("replay", keep(tmp_path, recording()), "--json").document
    assert document["origin"] == ["made by a test"]
    assert document["length_ns"] == 4 * NS_PER_S - 250 * NS_PER_MS
    opened = [row for row in document["decisions"] if (row["gate"] or {}).get("kind") == "open"]
    assert opened
    assert opened[0]["after_ns"] >= NS_PER_S
    assert opened[0]["gate_strategy"] == "idle_destage"


def test_rules_on_what_a_recording_does_not_have_are_named(cli: Cli, tmp_path: Path) -> None:
    file = keep(tmp_path, recording())
    assert cli("replay", file, "--json").document["notes"] == []
    words = ("replay", file, "--policy", "nas-sleep", "--against", "adaptive")
    notes = cli(*words, "--json").document["notes"]
    assert [note.split()[1] for note in notes] == ["asleep", "fall-asleep"]
    assert notes[0].endswith("does not have: here it is always `unknown`")
    assert f"- {notes[0]}"[:60] in cli(*words).out


def test_the_page_has_a_line_per_decision(cli: Cli, tmp_path: Path) -> None:
    result = cli("replay", keep(tmp_path, recording()))
    assert result.code == 0
    assert "made by a test" in result.out
    assert "open" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_a_replay_is_the_same_every_time(cli: Cli, tmp_path: Path) -> None:
    file = keep(tmp_path, recording())
    assert cli("replay", file, "--json").out == cli("replay", file, "--json").out


def test_the_probes_bare_output_is_a_recording_too(cli: Cli, tmp_path: Path) -> None:
    lines = [line for line in recording() if '"sysfs"' not in line and '"origin"' not in line]
    document = cli("replay", keep(tmp_path, lines), "--json").document
    assert document["decisions"]
    for row in document["decisions"]:
        dirty = row["proposals"][0]["conditions"][0]
        assert (dirty["signal"], dirty["measured"], dirty["holds"]) == ("dirty data", None, False)


def test_standard_input_is_a_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(recording())))
    assert cli("replay", "-", "--json").document["decisions"]


def test_damaged_lines_are_skipped_and_counted(cli: Cli, tmp_path: Path) -> None:
    lines = recording()
    lines[5] = lines[5][:40]
    result = cli("replay", keep(tmp_path, lines))
    assert result.code == 0
    assert "1 damaged lines skipped, first line 6" in result.out


@pytest.mark.parametrize("text", ["", "hello\n", "[]\n", '{"t":"origin","text":"x"}\n'])
def test_a_file_that_is_not_a_recording_is_66(cli: Cli, tmp_path: Path, text: str) -> None:
    result = cli("replay", keep(tmp_path, [text]))
    assert result.code == 66
    assert "is not a recording" in result.err
    assert "ebbgate record VOLUME > FILE" in result.err


def test_a_missing_file_is_66(cli: Cli) -> None:
    result = cli("replay", "/no/such/file")
    assert (result.code, "No such file" in result.err) == (66, True)


def test_another_protocol_is_69(cli: Cli, tmp_path: Path) -> None:
    hello = {"t": "hello", "ns": 1, "protocol": 99, "probe": "ebpf", "version": "9",
             "boot_id": "", "signals": {}}  # fmt: skip
    result = cli("replay", keep(tmp_path, [json.dumps(hello)]))
    assert result.code == 69
    assert "the probe speaks protocol 99" in result.err


def test_it_needs_no_root(cli: Cli, tmp_path: Path) -> None:
    cli.euid = 1000
    assert cli("replay", keep(tmp_path, recording())).code == 0


def test_two_policies_side_by_side(cli: Cli, tmp_path: Path) -> None:
    file = keep(tmp_path, recording())
    result = cli("replay", file, "--policy", "observe-only", "--against", "adaptive")
    assert result.code == 0
    assert "- only adaptive, + only observe-only" in result.out
    assert "idle for 300 ms" in result.out
    document = cli("replay", file, "--policy", "observe-only", "--against", "adaptive", "--json")
    assert document.document["against"]["decisions"]
    assert all(row["gate"] is None for row in document.document["decisions"])


def test_a_policy_may_be_a_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nname: mine\nwhy: A test.\nstrategies: [stream_bypass]\n")
    document = cli("replay", keep(tmp_path, recording()), "--policy", str(path), "--json").document
    assert document["policy"] == "mine"
    assert {p["strategy"] for row in document["decisions"] for p in row["proposals"]} == {
        "stream_bypass"
    }


@pytest.mark.parametrize(
    ("policy", "text", "message", "code"),
    [
        ("nosuch", "", "unknown policy: nosuch", 66),
        ("bad.yaml", "version: 1\nname: x\nwhy: y.\nstratgies: []\n", "bad.yaml:4:1", 78),
    ],
)
def test_an_unknown_policy_is_refused(
    cli: Cli, tmp_path: Path, policy: str, text: str, message: str, code: int
) -> None:
    if text:
        (tmp_path / policy).write_text(text)
        policy = str(tmp_path / policy)
    result = cli("replay", keep(tmp_path, recording()), "--policy", policy)
    assert (result.code, message in result.err.replace("\n", "")) == (code, True)


def test_the_time_at_each_gate_adds_up() -> None:
    def row(after_ns: int, kind: str | None) -> dict[str, object]:
        return {"after_ns": after_ns, "gate": kind and {"kind": kind}}

    rows = [row(100, "closed"), row(400, "paced"), row(400, "closed"), row(700, None)]
    assert time_by_gate(rows, 1000) == {"released": 400, "closed": 600}
    assert time_by_gate([], 1000) == {"released": 1000}
