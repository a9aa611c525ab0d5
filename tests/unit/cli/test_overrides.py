# SPDX-License-Identifier: GPL-2.0-only
"""`set`, `drain`, `release` and a timed hold are checked and sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ebbgate.cli.intents import parse_for
from ebbgate.cli.overrides import parse_by
from ebbgate.errors import UsageError
from ebbgate.units import NS_PER_S
from tests.builders import live_document
from tests.unit.conftest import NOW_NS, Cli

HOUR_NS = 3600 * NS_PER_S


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with summer time, by a rule that needs no files."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def asked(cli: Cli) -> tuple[str, str | None, dict[str, Any]]:
    (intent,) = cli.intents()
    return intent["kind"], intent["volume"], intent["args"]


@pytest.mark.parametrize(
    ("words", "args"),
    [
        ((), {}),
        (("for", "10min"), {"for_ns": 600 * NS_PER_S}),
        (("--for", "10min"), {"for_ns": 600 * NS_PER_S}),
    ],
)
def test_a_set_request_prints_the_outcome(
    cli: Cli, words: tuple[str, ...], args: dict[str, int]
) -> None:
    with cli.daemon(answers=(True, "bcache0: sequential_cutoff = 1 MiB")):
        result = cli("set", "bcache0", "sequential_cutoff", "1MiB", *words)
    assert (result.code, result.out) == (0, "bcache0: sequential_cutoff = 1 MiB\n")
    assert asked(cli) == ("set", "bcache0", {"knob": "sequential_cutoff", "value": "1MiB", **args})


SET = ("set", "bcache0")
PERCENT = (*SET, "writeback_percent")
DRAIN = ("drain", "bcache0")


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ((*SET, "sequential_cutof", "1"), "no knob sequential_cutof", "mean sequential_cutoff?"),
        ((*SET, "sequential_cutoff", "0"), "0 is out of bounds", "takes 64 KiB to 4.0 GiB"),
        ((*PERCENT, "lots"), "'lots' is not a value", "takes 0% to 40%"),
        ((*SET, "cache_mode", "none"), "ebbgate never writes cache_mode", "by hand"),
        ((*PERCENT, "9", "for", "ever"), "for: not a duration", "for example for 10min"),
        ((*PERCENT, "9", "until", "6"), "unexpected argument: until 6", "for example: for 10min"),
        ((*PERCENT, "9", "--for", "1ms"), "--for must be 1 s to 720 h", ""),
        ((*PERCENT, "9", "for", "1s", "--for", "1s"), "unexpected argument: for 1s", ""),
        (PERCENT, "Missing argument 'VALUE'", "see ebbgate set --help"),
        (DRAIN, "drain needs either --by or --within", ""),
        ((*DRAIN, "--by", "6:00", "--within", "1h"), "drain needs either --by or --within", ""),
        ((*DRAIN, "--by", "25:00"), "--by: not a time of day: '25:00'", ""),
        ((*DRAIN, "--by", "soon"), "--by: not a time of day", ""),
        ((*DRAIN, "--within", "soon"), "--within: not a duration", ""),
        (("hold", "--off", "--for", "1min"), "--off cannot be combined with --for", ""),
    ],
)
def test_an_invalid_request_is_refused_before_it_is_sent(
    cli: Cli, words: tuple[str, ...], message: str, hint: str
) -> None:
    with cli.daemon(answers=(True, "done")):
        result = cli(*words)
        assert cli.intents() == []
    assert result.code == 64
    assert message in result.err
    assert hint in result.err


def test_a_drain_within_a_time(cli: Cli) -> None:
    with cli.daemon(answers=(True, "bcache0: drains within 2 h")):
        result = cli("drain", "bcache0", "--within", "2h")
    assert (result.code, result.out) == (0, "bcache0: drains within 2 h\n")
    assert asked(cli) == ("drain", "bcache0", {"for_ns": 2 * HOUR_NS})


@pytest.mark.usefixtures("berlin")
def test_a_drain_by_a_time_of_day(cli: Cli) -> None:
    # 23:13:20 on this machine's clock.
    with cli.daemon(answers=(True, "done")):
        cli("drain", "bcache0", "--by", "06:00")
    assert asked(cli)[2] == {"for_ns": (6 * 3600 + 46 * 60 + 40) * NS_PER_S}


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("now", "by", "hours"),
    [
        (1_743_202_800, "06:00", 6),  # 2025-03-29 00:00, the night before the clock goes forward
        (1_743_289_200, "06:00", 5),  # the night in which it does
        (1_761_429_600, "06:00", 7),  # the night in which it goes back
        (1_743_202_800, "00:00", 24),  # now is the next day's
        (1_761_438_600, "02:15", 0.75),  # 02:30, before the clock goes back
        (1_761_442_200, "02:45", 0.25),  # 02:30, after it went back
    ],
)
def test_the_time_of_day_is_the_next_one_across_summer_time(
    now: int, by: str, hours: float
) -> None:
    assert parse_by(by, now * NS_PER_S) == hours * HOUR_NS


@pytest.mark.parametrize(
    ("words", "args"), [((), {}), (("sequential_cutoff",), {"knob": "sequential_cutoff"})]
)
def test_a_release_is_for_one_knob_or_all(
    cli: Cli, words: tuple[str, ...], args: dict[str, str]
) -> None:
    with cli.daemon(answers=(True, "bcache0: nothing to release")):
        assert cli("release", "bcache0", *words).out == "bcache0: nothing to release\n"
    assert asked(cli) == ("release", "bcache0", args)


def test_a_hold_may_have_an_end(cli: Cli) -> None:
    with cli.daemon(answers=(True, "bcache0: held for 60 s")):
        assert cli("hold", "bcache0", "--for", "1min").code == 0
    assert asked(cli) == ("hold", "bcache0", {"on": True, "for_ns": 60 * NS_PER_S})


def test_a_refusal_has_the_daemons_next_step(cli: Cli) -> None:
    refusal = "bcache0 is in advise, which leaves the gate alone\n  first: ebbgate enforce bcache0"
    with cli.daemon(answers=(False, refusal)):
        result = cli("drain", "bcache0", "--within", "1h")
    assert (result.code, result.err) == (74, f"ebbgate: {refusal}\n")


@pytest.mark.parametrize("command", ["status", "explain"])
def test_active_overrides_are_shown_with_user_and_time_left(cli: Cli, command: str) -> None:
    cutoff = {"kind": "set", "knob": "sequential_cutoff", "value": "1048576", "who": "jo"}
    active = [{**cutoff, "left_ns": 570 * NS_PER_S}, {"kind": "hold", "who": "jo"}]
    with cli.daemon() as store:
        store.set_live("bcache0", live_document(overrides=active), NOW_NS)
        out = cli(command, "bcache0").out
    assert "override: sequential_cutoff 1 MiB, requested by jo, for another 9.5 min" in out
    assert "override: hold, requested by jo, until released" in out


def test_a_time_is_from_a_second_to_a_month() -> None:
    assert parse_for("1s") == NS_PER_S
    assert parse_for("720h") == 720 * HOUR_NS
    for wrong in ("999ms", "721h", "", "for"):
        with pytest.raises(UsageError):
            parse_for(wrong)
