# SPDX-License-Identifier: GPL-2.0-only
"""A warm-up that waits for another one can be paused, and people see that."""

from __future__ import annotations

from ebbgate.model.warm import JobState
from tests.warm_fixture import FakeProcess
from tests.warm_people import People, until_begun


def test_a_job_that_waits_its_turn_is_shown_as_paused_until_it_is_resumed(people: People) -> None:
    people.warm("/srv/a")
    people.warm("/srv/b")
    assert people.job(2, "pause") == (True, "job 2 is paused")
    shown = people.jobs[1]
    assert (shown.state, shown.why) == (JobState.PAUSED, "paused by a user, after job 1")
    assert people.job(2, "resume") == (True, "job 2 goes on")
    assert (people.jobs[1].state, people.jobs[1].why) == (JobState.WAITING, "after job 1")


def test_a_job_that_was_paused_before_its_turn_reads_nothing(people: People) -> None:
    people.warm("/srv/a")
    people.warm("/srv/b")
    people.job(2, "pause")
    people.hears(FakeProcess.made[0], "done", phase="check", checked=1, hits=1)
    process = until_begun(people, 2)
    people.now(lambda: people.intents.dispatcher.warm.on_tick("bcache0"))
    assert people.jobs[1].state is JobState.PAUSED
    assert not {"go", "step"} & {*process.commands}
