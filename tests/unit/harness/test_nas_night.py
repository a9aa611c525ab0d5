# SPDX-License-Identifier: GPL-2.0-only
"""The first hour of a quiet night: the policy lets the disk sleep and writes nothing meanwhile."""

from __future__ import annotations

import pytest

from ebbgate.units import NS_PER_S
from tests.bench import nas_night
from tests.bench.nas_night import Night


def test_a_held_disk_sleeps_and_no_write_back_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas_night, "NIGHT_NS", 3600 * NS_PER_S)
    stock, ours = (Night("quiet", arm, 1).metrics() for arm in nas_night.ARMS)
    assert (ours["writes_held"], ours["spin_ups"]) == (0, 0)
    assert ours["held_h"] > 0.9
    assert ours["asleep_h"] > stock["asleep_h"]
