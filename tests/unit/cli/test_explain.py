# SPDX-License-Identifier: GPL-2.0-only
"""`explain` shows measured values, thresholds, missing signals and what decided."""

from __future__ import annotations

from ebbgate.model.decision import Gate, GateKind
from tests.builders import PROMOTION, decision, live_document, proposal
from tests.unit.conftest import NOW_NS, Cli


def condition(signal: str, measured: str | None, text: str, *, holds: bool) -> dict[str, object]:
    comparison, threshold = text.split(maxsplit=1)
    return {
        "signal": signal,
        "measured": measured,
        "comparison": comparison,
        "threshold": threshold,
        "holds": holds,
    }


PROPOSALS = [
    {
        "strategy": "idle_destage",
        "reason": "destage: quiet long enough",
        "wins": ["destage"],
        "conditions": [
            condition("idle for", "410 ms", ">= 300 ms", holds=True),
            condition("time to full", None, "< 60 s", holds=False),
        ],
    },
    {"strategy": "stream_bypass", "unsupported": "the cache mode is writethrough"},
]


def test_every_condition_shows_value_threshold_or_why_not(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(proposals=PROPOSALS), NOW_NS)
        out = cli("explain", "bcache0").out
    assert "idle_destage  decides destage" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["idle", "for", "410", "ms", ">=", "300", "ms", "yes"] in lines
    assert ["time", "to", "full", "-", "<", "60", "s", "unknown"] in lines
    assert "stream_bypass  unsupported here\n  the cache mode is writethrough" in out


def test_the_history_is_there_without_a_daemon(cli: Cli) -> None:
    gate = Gate(GateKind.PACED, 1 << 20)
    chosen = decision(
        proposal("idle_destage", gate=gate, reason="quiet for 410 ms"),
        gate=gate,
        gate_strategy="idle_destage",
    )
    with cli.daemon() as store:
        store.add_decision(chosen, NOW_NS)
    result = cli("explain", "bcache0")
    assert result.code == 0
    assert "11-14 22:13:20  idle_destage  quiet for 410 ms" in result.out
    assert "ebbgated is not running: nothing is measured" in result.out


def test_only_the_last_decisions_come(cli: Cli) -> None:
    with cli.daemon() as store:
        for at in range(5):
            store.add_decision(decision(proposal()), NOW_NS + at)
    document = cli("explain", "bcache0", "--last", "2", "--json").document
    assert [row["at_unix_ns"] - NOW_NS for row in document["history"]] == [4, 3]


def test_explain_without_decisions_names_the_next_step(cli: Cli) -> None:
    result = cli("explain", "bcache0")
    assert result.code == 69
    assert result.err == (
        "ebbgate: no decision was recorded for bcache0\n"
        "  start the daemon: systemctl start ebbgated\n"
    )


def test_it_tells_what_another_size_of_the_cache_would_bring(cli: Cli) -> None:
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(), NOW_NS)
        for command in ("explain", "status"):
            out = " ".join(cli(command, "bcache0").out.split())
            assert "hits (model)" in out
            assert "40% of reads with half the cache, 50% with this one, 75% with twice" in out


def test_it_tells_why_moves_into_the_cache_wait(cli: Cli) -> None:
    promotion = {**PROMOTION, "mover": "waiting", "mover_why": "users' misses are promoted"}
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(promotion=promotion), NOW_NS)
        out = " ".join(cli("explain", "bcache0").out.split())
    assert "users' misses brought in 310 blocks, and reads were stopped for it 2 times" in out
    assert "waits: users' misses are promoted" in out
    assert out.count("hot data:") == 1


def test_too_few_reads_give_no_figures(cli: Cli) -> None:
    curve = {"observed_ns": 5, "sampled_reads": 12, "reads_min": 256}
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(miss_ratio=curve), NOW_NS)
        out = cli("explain", "bcache0").out
    assert "hits (model): not known yet (12 of 256 sampled reads)" in out


def test_names_and_numbers_that_cannot_be_meant_are_errors(cli: Cli) -> None:
    with cli.daemon():
        assert cli("explain", "9" * 300).code == 66
        assert cli("explain", "bcache0", "--last", "9" * 30).code == 64
