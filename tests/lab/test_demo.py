# SPDX-License-Identifier: GPL-2.0-only
"""The parts of the demo that need no guest; `make demo` itself is the test of the rest."""

from __future__ import annotations

import io

from rich.console import Console

from tests.lab import demo_run
from tests.lab.demo_screen import Moment, Screen, bar, history
from tests.lab.demo_watch import moment_of


def screen(*, terminal: bool) -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    return Screen(Console(file=out, force_terminal=terminal, width=100, highlight=False)), out


def test_a_little_dirty_data_is_not_drawn_as_none() -> None:
    assert bar(0.0, 10) == "·" * 10
    assert bar(0.1, 10) == "█" + "·" * 9
    assert bar(10_000.0, 10) == "█" * 10
    assert history([0.0, 0.1, 10_000.0]) == " ▁█"


def test_without_a_terminal_a_decision_is_a_line_with_its_reason() -> None:
    shown, out = screen(terminal=False)
    with shown:
        shown.arm("ebbgate")
        shown.moment(Moment(123.4, "gap", "paced 40 MiB/s"))
        shown.decision("bcache0: idle_destage: destage: idle 410 ms >= wait 300 ms")
    level, decision = out.getvalue().splitlines()
    assert "123.4 MiB dirty" in level
    assert "gap" in level
    assert "gate paced 40 MiB/s" in level
    assert decision.endswith("destage: idle 410 ms >= wait 300 ms")


def test_on_a_terminal_the_panel_shows_level_regime_gate_and_reason() -> None:
    shown, out = screen(terminal=True)
    with shown:
        shown.arm("ebbgate")
        shown.decision("bcache0: idle_destage: wait: a request arrived")
        shown.moment(Moment(300.0, "burst", "closed", "holds 300 MiB dirty back"))
    for text in ("ebbgate demo", "300 MiB", "burst", "closed", "a request arrived"):
        assert text in out.getvalue()


def test_a_volume_without_a_daemon_has_a_level_and_nothing_else() -> None:
    assert moment_of({"dirty_mib": 1.5}) == Moment(1.5)


def test_a_cache_that_did_not_come_clean_is_said_with_what_is_left() -> None:
    assert demo_run.clean_text(demo_run.Result(clean_s=3.14)) == "3.1 s"
    assert demo_run.clean_text(demo_run.Result(left_mib=281.6)) == "> 40 s, 282 MiB left"
