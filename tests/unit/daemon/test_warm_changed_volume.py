# SPDX-License-Identifier: GPL-2.0-only
"""What becomes of warm-ups when a volume is followed anew, as after `lvextend`."""

from __future__ import annotations

from copy import copy

import pytest

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.model.warm import JobState
from tests.warm_fixture import FakeProcess
from tests.warm_people import People, until_begun


def follow_anew(people: People) -> VolumeLoop:
    """Have a new loop follow the volume, as for one whose size is another."""
    found = copy(people.intents.volume.loop)
    people.intents.daemon.volumes["bcache0"] = found
    people.now(people.intents.dispatcher.warm.poll)
    return found


def test_the_one_that_reads_says_what_has_happened_and_the_next_begins(people: People) -> None:
    people.warm("/srv/a")
    people.warm("/srv/b")
    loop = follow_anew(people)
    process = until_begun(people, 2)
    assert FakeProcess.made[0].ended
    assert (process.sent[0], process.commands[0]) == ({"path": "/srv/b"}, "start")
    people.now(people.intents.dispatcher.warm.poll)
    first, second = loop.jobs
    assert (first.state, first.why) == (
        JobState.FAILED,
        "the volume was changed, such as resized: run it again",
    )
    assert not second.state.over


@pytest.mark.parametrize("count", [1, 3])
def test_all_end_with_a_volume_that_has_left(people: People, count: int) -> None:
    warm = people.intents.dispatcher.warm
    for number in range(count):
        people.warm(f"/srv/{number}")
    del people.intents.daemon.volumes["bcache0"]
    people.now(warm.poll)
    ended = [warm.job(number) for number in range(1, count + 1)]
    assert [job.why for job in ended if job] == count * ["the volume is gone"]
