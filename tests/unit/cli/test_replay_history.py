# SPDX-License-Identifier: GPL-2.0-only
"""`replay --history` shows where policies differ, and what samples cannot show."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbgate.model.volume import Kind
from ebbgate.probes.topology import find
from ebbgate.units import NS_PER_S
from tests.history_fixture import START_NS, keep, recorded
from tests.unit.conftest import NOW_NS, Cli


@pytest.fixture
def lived(cli: Cli, tmp_path: Path) -> Cli:
    """A machine on which bcache0 had gaps; its clock is at their beginning."""
    keep(cli.history, recorded("sim-gap-drain"), Kind.BCACHE, times=4)
    cli.now_ns = START_NS + 30 * NS_PER_S
    (cli.state_dir / "policies.d").mkdir()
    settings = cli.state_dir / "ebbgate.toml"
    settings.write_text(f'policy_dir = "{cli.state_dir / "policies.d"}"\n')
    return cli


def run(cli: Cli, *words: str) -> tuple[str, ...]:
    return ("--config", str(cli.state_dir / "ebbgate.toml"), "replay", "--history", *words)


def test_the_page_has_differences_gates_and_notes(lived: Cli) -> None:
    result = lived(*run(lived, "bcache0", "--since", "30s", "--policy", "observe-only"))
    assert result.code == 0
    assert "24 samples" in result.out
    assert "adaptive -> observe-only" in result.out
    assert "open -> the kernel's own setting" in result.out
    assert "GATE" in result.out
    assert "- the history does not keep run lengths" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("since", ["200000d", "99999999999999999999d"])
def test_a_time_before_all_clocks_is_all_of_the_history(lived: Cli, since: str) -> None:
    result = lived(*run(lived, "bcache0", "--since", since, "--json"))
    assert (result.code, result.document["from_unix_s"], result.document["frames"]) == (0, 0.0, 24)


def test_times_are_of_the_same_zone_as_those_of_explain(
    lived: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "XXX-5")
    time.tzset()
    try:
        words = ("bcache0", "--since", "30s", "--policy", "observe-only")
        out = lived(*run(lived, *words)).out
    finally:
        monkeypatch.undo()
        time.tzset()
    start = datetime.fromtimestamp(START_NS / NS_PER_S, UTC)
    assert f"from {start:%m-%d %H:%M:%S} to " in out
    assert "AT (UTC)" in out


def test_replay_json_has_all_figures(lived: Cli) -> None:
    words = ("bcache0", "--since", "30s", "--policy", "observe-only", "--json")
    document = lived(*run(lived, *words)).document
    assert (document["policy"], document["against"]) == ("observe-only", "adaptive")
    assert document["until_unix_s"] - document["from_unix_s"] == 30.0
    assert {each["setting"] for each in document["differences"]} == {
        "destage",
        "sequential_cutoff",
        "congestion_bypass",
    }
    assert document["destage_s"]["before"].keys() == {"open", "closed"}
    assert document["coverage_ratio"] == pytest.approx(1.0, abs=0.1)


def test_history_is_compared_with_the_present_policy(lived: Cli) -> None:
    text = "version: 1\nname: mine\nwhy: A test.\nstrategies: []\n"
    (lived.state_dir / "policies.d/mine.yaml").write_text(text)
    document = lived(*run(lived, "bcache0", "--since", "30s", "--json")).document
    assert (document["policy"], document["against"]) == ("adaptive", "mine")
    same = lived(*run(lived, "bcache0", "--since", "30s", "--policy", "mine", "--against", "mine"))
    assert (same.code, "no difference" in same.out) == (0, True)


def test_the_present_policy_may_be_chosen_by_uuid(lived: Cli) -> None:
    uuid = find(lived.fake.sysfs, "bcache0").uuid
    assert uuid
    text = f"version: 1\nname: mine\nmatch: {{volume: {uuid}}}\nstrategies: []\n"
    (lived.state_dir / "policies.d/mine.yaml").write_text(text)
    document = lived(*run(lived, "bcache0", "--since", "30s", "--json")).document
    assert document["against"] == "mine"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("replay",), 64, "see ebbgate replay --help"),
        (
            ("replay", "x.jsonl", "--history", "bcache0"),
            64,
            "replay needs either FILE or --history",
        ),
        (("replay", "x.jsonl", "--since", "1h"), 64, "--since needs --history"),
        (("replay", "--history", "bcache0", "--since", "soon"), 64, "--since:"),
        (("replay", "--history", "nosuch"), 66, "no such volume: nosuch"),
        (("replay", "--history", "bcache0"), 69, "nothing was recorded yet"),
        (("replay", "--history", "bcache0", "--policy", "x"), 66, "unknown policy: x"),
        (("replay", "--history", "bcache0", "--policy", "x" * 300), 78, "File name too long"),
    ],
)
def test_an_impossible_replay_is_an_error(
    cli: Cli, words: tuple[str, ...], code: int, message: str
) -> None:
    result = cli(*words)
    assert (result.code, message in result.err) == (code, True)
    assert cli.now_ns == NOW_NS


def test_replay_of_a_time_without_samples_is_an_error(lived: Cli) -> None:
    lived.now_ns += 3600 * NS_PER_S
    result = lived(*run(lived, "bcache0", "--since", "10min"))
    assert (result.code, "the history has nothing on bcache0" in result.err) == (66, True)
