# SPDX-License-Identifier: GPL-2.0-only
"""People who warm files, the processes that would read, and a machine that boots."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.daemon import warm_intents
from tests.boot_fixture import Machine
from tests.intent_fixture import IntentHarness
from tests.warm_fixture import OPENED, FakeProcess
from tests.warm_people import People


@pytest.fixture
def people(intents: IntentHarness, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    FakeProcess.made, FakeProcess.first = [], OPENED
    monkeypatch.setattr(warm_intents, "WarmProcess", FakeProcess)
    monkeypatch.setattr(warm_intents, "cached_volumes_below", lambda *_: ("bcache0",))
    intents.tick()
    yield People(intents)
    intents.run(intents.dispatcher.warm.stop())


@pytest.fixture
def boots(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Machine:
    caplog.set_level(logging.INFO)
    return Machine(tmp_path, caplog)
