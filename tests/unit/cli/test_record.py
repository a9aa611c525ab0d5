# SPDX-License-Identifier: GPL-2.0-only
"""`record` refuses what the probe would refuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ebbgate.cli import record
from tests.unit.conftest import Cli


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--wait", "2h", "1ms to 1h"),
        ("--wait", "0s", "1ms to 1h"),
        ("--pace", "100us", "1ms to 60s"),
        ("--pace", "61s", "1ms to 60s"),
    ],
)
def test_a_time_that_the_probe_refuses_is_a_usage_error(
    cli: Cli, option: str, value: str, allowed: str
) -> None:
    done = cli("record", "bcache0", option, value)
    assert done.code == 64
    assert f"{option}: {value} is out of range" in done.err
    assert allowed in done.err


@pytest.mark.parametrize(("option", "value"), [("--wait", "1h"), ("--pace", "0"), ("--pace", "1m")])
def test_a_time_that_the_probe_takes_is_taken(cli: Cli, option: str, value: str) -> None:
    assert "out of range" not in cli("record", "nothing", option, value).err


def test_the_ranges_are_those_of_the_probe() -> None:
    header = (Path(__file__).resolve().parents[3] / "bpf/command.h").read_text()
    limits = dict(re.findall(r"^#define ((?:WAIT|PACE)_NS_M\w+) (\d+)ULL$", header, re.MULTILINE))
    assert len(limits) == 4
    assert limits == {name: str(getattr(record, name)) for name in limits}
