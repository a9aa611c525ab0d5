# SPDX-License-Identifier: GPL-2.0-only
"""People who warm files, and the processes that would read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ebbgate.daemon import warm_intents
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
