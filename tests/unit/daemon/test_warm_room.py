# SPDX-License-Identifier: GPL-2.0-only
"""How much is warmed at once, and how many jobs wait or are remembered."""

from __future__ import annotations

import asyncio
import time

import pytest

from ebbgate.daemon import warm_intents
from ebbgate.daemon.cache_facts import CacheFacts
from ebbgate.daemon.warm_job import WarmJob
from ebbgate.intents.validation import Intent, IntentArgs
from ebbgate.model.hot_set import ChunkRange
from ebbgate.model.override import IntentKind
from ebbgate.model.warm import JobState, JobStatus
from ebbgate.text import SHOWN_MAX
from ebbgate.units import DAY_NS, GIB, MIB, MINUTE_NS
from tests.warm_fixture import OPENED, FakeProcess
from tests.warm_people import UUID, People, opens, restore, targets, until_begun


def test_files_that_do_not_fit_together_are_refused(people: People) -> None:
    """The cache has 1 GiB, of which nine tenths less the dirty data are room."""
    opens(200 * MIB)
    people.warm("/srv/a")
    people.warm("/srv/b")
    refused = people.warm("/srv/c")
    text = "600 MiB do not fit, 400 MiB of which are of jobs that are not done yet"
    assert (refused.ok, text in refused.outcome) == (False, True), refused.outcome
    assert targets(people) == ["/srv/a", "/srv/b"]
    people.hears(FakeProcess.made[0], "done", phase="check", checked=1, hits=1)
    assert people.warm("/srv/c").ok, "what is done is no part of it any more"


def test_files_in_small_pieces_take_whole_blocks_of_dm_cache(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while their jobs wait."""
    facts = CacheFacts(512, MIB, GIB)
    monkeypatch.setattr(warm_intents, "read_cache_facts", lambda *_: facts)
    scattered = {**OPENED, "bytes": 2 * MIB, "pieces": 500, "blocks": {str(MIB): 300}}
    FakeProcess.first = scattered
    assert people.warm("/srv/a").ok
    refused = people.warm("/srv/b")
    text = (
        "600 MiB of whole cache blocks (302 MiB of data) do not fit, 300 MiB of which are of jobs"
        " that are not done yet"
    )
    assert (refused.ok, text in refused.outcome) == (False, True), refused.outcome
    FakeProcess.first = {**scattered, "blocks": {str(MIB): 2}}
    assert people.warm("/srv/c").ok, "its pieces are close together"


def test_jobs_behind_one_whose_turn_comes_do_not_block_it(people: People) -> None:
    """It may have grown while it waited."""
    opens(100 * MIB)
    for path in ("/srv/a", "/srv/b", "/srv/c", "/srv/d"):
        assert people.warm(path).ok
    opens(400 * MIB)
    people.hears(FakeProcess.made[0], "done", phase="check", checked=1, hits=1)
    assert until_begun(people, 4).sent[0] == {"path": "/srv/b"}


def test_the_coldest_ranges_are_left_out_where_the_cache_is_too_small(people: People) -> None:
    frame = people.intents.volume.loop.state.current_frame
    assert frame is not None
    fit = (int((frame.cache_bytes or 0) * 0.9) - (frame.dirty_bytes or 0)) // MIB
    found = restore(people, uuid=UUID, ranges=f"400,-401+{0x3FF:x}")
    assert "beyond the room in the cache, the coldest" in found.outcome
    ranges = FakeProcess.made[0].sent[0]["ranges"]
    assert ranges == [(1024 * MIB, 1025 * MIB), (0, (fit - 1) * MIB)]


def test_ranges_get_the_room_that_earlier_jobs_leave(people: People) -> None:
    opens(300 * MIB)
    people.warm("/srv/a")
    frame = people.intents.volume.loop.state.current_frame
    assert frame is not None
    room = int((frame.cache_bytes or 0) * 0.9) - (frame.dirty_bytes or 0) - 300 * MIB
    opens(room // MIB * MIB)
    found = restore(people, uuid=UUID, ranges=f"0+{0x3FF:x}")
    assert found.ok, found.outcome
    assert "beyond the room that earlier jobs leave in the cache, the coldest" in found.outcome
    assert FakeProcess.made[1].sent[0]["ranges"] == [(0, room // MIB * MIB)]


def test_jobs_with_saved_ranges_are_fewer_than_others(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each keeps its ranges in memory until it is over."""
    monkeypatch.setattr(warm_intents, "WITH_RANGES_MAX", 2)
    opens(MIB)
    for _ in range(2):
        assert restore(people, uuid=UUID, ranges="0").ok
    refused = restore(people, uuid=UUID, ranges="0")
    assert (refused.ok, "2 jobs with saved ranges wait already" in refused.outcome) == (False, True)
    assert people.warm().ok
    assert people.job(people.jobs[0].id, "cancel")[0]
    assert restore(people, uuid=UUID, ranges="0").ok


def test_a_job_that_is_over_keeps_no_ranges_and_no_long_text() -> None:
    args = IntentArgs(ranges=(ChunkRange(0),), chunk_bytes=MIB)
    intent = Intent(7, IntentKind.WARM, "bcache0", "jo", args)
    status = JobStatus(7, "1 saved ranges", JobState.READING)
    job = WarmJob(intent, FakeProcess(), status, lambda: None, lambda: None)
    asyncio.run(job.end(JobState.FAILED, "/srv/" * 800))
    assert job.intent.args.ranges == ()
    assert len(job.status.why) == SHOWN_MAX


def test_jobs_that_are_over_are_forgotten_by_number_and_after_a_day(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But none within a minute of its end, in which a client that waits looks once a second."""
    warm, now_ns = people.intents.dispatcher.warm, time.time_ns()
    monkeypatch.setattr("ebbgate.daemon.warm_job.time.time_ns", lambda: now_ns)
    for number in range(1, 11):
        people.warm(f"/srv/{number}")
        assert people.job(people.jobs[-1].id, "cancel")[0]
    now_ns += MINUTE_NS
    people.now(warm.poll)
    assert targets(people) == [f"/srv/{number}" for number in range(1, 11)]
    now_ns += 1
    people.now(warm.poll)
    assert targets(people) == [f"/srv/{number}" for number in range(3, 11)]
    now_ns += DAY_NS - MINUTE_NS - 1
    people.warm("/srv/11")
    people.now(warm.poll)
    assert len(people.jobs) == 9
    now_ns += 1
    people.now(warm.poll)
    assert targets(people) == ["/srv/11"]


def test_as_many_jobs_that_are_over_are_kept_as_may_wait(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_intents, "JOBS_MAX", 9)
    for number in range(1, 11):
        people.warm(f"/srv/{number}")
        assert people.job(people.jobs[-1].id, "cancel")[0]
    assert targets(people) == [f"/srv/{number}" for number in range(2, 11)]
