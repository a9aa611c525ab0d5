# SPDX-License-Identifier: GPL-2.0-only
"""What people are told of a hot set that does not fit into a saved file."""

from __future__ import annotations

import pytest

from ebbgate.daemon.intent_dispatcher import IntentOutcome
from ebbgate.model import hot_set
from ebbgate.model.override import IntentKind
from ebbgate.model.records import ReuseSamples
from tests.warm_people import People


@pytest.mark.parametrize(
    ("characters", "said", "ranges"),
    [
        (60_000, "bcache0: 3 MiB in 3 ranges, observed", "a,-a,-2"),
        (5, "bcache0: 2 MiB in 2 ranges (without 1 MiB, the coldest), observed", "a,-a"),
    ],
)
def test_no_more_is_stated_than_is_saved(
    people: People, monkeypatch: pytest.MonkeyPatch, characters: int, said: str, ranges: str
) -> None:
    monkeypatch.setattr(hot_set, "TEXT_MAX", characters)
    people.intents.volume.loop.on_record(ReuseSamples("bcache0", 1, (0, 2 * 256, 2 * 2560)))

    async def ask() -> IntentOutcome:
        _, outcome = people.intents.dispatcher.submit(IntentKind.HOT, "bcache0", {}, "jo")
        return await outcome

    found = people.intents.run(ask())
    assert found.text.startswith(said)
    assert found.data["ranges"] == ranges
