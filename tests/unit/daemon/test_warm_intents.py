# SPDX-License-Identifier: GPL-2.0-only
"""Warm-ups are jobs: begun, queued, paused, cancelled, and they stand back for users."""

from __future__ import annotations

from typing import Any

import pytest

from ebbgate.daemon import pin_intents, warm_intents, warm_job, warm_process
from ebbgate.daemon.intent_dispatcher import DEADLINE_S, IntentOutcome
from ebbgate.model.override import IntentKind
from ebbgate.model.records import ReuseSamples
from ebbgate.model.volume import Mode
from ebbgate.model.warm import JobState
from ebbgate.units import MIB, NS_PER_S
from ebbgate.warm.pace import Pace, Speed
from ebbgate.warm.promotion_watch import BlockReads, PromotionWatch
from tests.builders import busy_edge
from tests.intent_fixture import answer
from tests.on_loop_fixture import ON_LOOP, add_dm_on_loop
from tests.warm_fixture import OPENED, FakeProcess
from tests.warm_people import (
    UUID,
    People,
    one_takes_long_to_open,
    restore,
    until_begun,
    until_waits,
)


def test_a_job_begins_and_its_end_is_shown(people: People) -> None:
    found = people.warm(bandwidth_bytes_per_s=20 * MIB)
    assert answer(found) == (
        True,
        "bcache0: job 1 warms /srv/a, 8 MiB in 3 pieces, at 20 MiB/s at most;"
        " without 4 KiB compressed or otherwise encoded",
    )
    (process,) = FakeProcess.made
    assert process.sent[0] == {"path": "/srv/a"}
    assert (process.commands[0], process.sent[1]["kind"]) == ("start", "bcache")
    people.hears(process, "progress", read=3 * MIB)
    assert people.jobs[0].read_bytes == 3 * MIB
    people.hears(process, "done", phase="check", checked=256, hits=255)
    (job,) = people.jobs
    assert (job.state, job.why) == (JobState.DONE, "99.6% of a sample is in the cache")
    assert process.ended


def test_a_poor_result_is_no_success_without_a_word(people: People) -> None:
    people.warm()
    people.hears(FakeProcess.made[0], "done", phase="check", checked=100, hits=60)
    assert "60.0% of a sample is in the cache; the rest was not taken" in people.jobs[0].why


def test_what_lies_on_another_device_is_not_called_cached(people: People) -> None:
    people.warm()
    fields = {"phase": "check", "checked": 200, "hits": 120, "elsewhere": 80}
    people.hears(FakeProcess.made[0], "done", **fields)
    assert people.jobs[0].why == (
        "60.0% of a sample is in the cache; 40.0% is on another device: see ebbgate layout show"
    )


@pytest.mark.parametrize("kind", [IntentKind.WARM, IntentKind.PIN])
def test_a_process_that_hangs_while_it_opens_is_given_up(
    people: People, monkeypatch: pytest.MonkeyPatch, kind: IntentKind
) -> None:
    FakeProcess.first = None
    monkeypatch.setattr(warm_process, "OPEN_S", 0.05)
    monkeypatch.setattr(pin_intents, "WarmProcess", FakeProcess)
    found = people.intents.ask(kind, None, path="/srv/a")
    assert answer(found)[0] is False
    assert "the reading process has not answered within 0.05 s" in found.outcome
    assert FakeProcess.made[0].ended


def test_the_answer_names_what_hangs_before_the_request_is_given_up() -> None:
    """The process is started before, and ended after: each takes a second or two at most."""
    assert warm_process.OPEN_S + 4 <= DEADLINE_S


def test_it_stops_at_once_when_users_return(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    people.warm()
    (process,) = FakeProcess.made
    warm = people.intents.dispatcher.warm
    monkeypatch.setattr(warm_job, "pace", lambda *_, **__: Pace(Speed.GO))
    people.now(lambda: warm.on_tick("bcache0"))
    people.now(lambda: warm.on_edge(busy_edge(10_000)))
    assert process.commands[-2:] == ["go", "hold"]
    assert (people.jobs[0].state, people.jobs[0].why) == (JobState.WAITING, "users are back")


def test_beside_users_it_reads_only_if_it_did_not_in_their_last_pause(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    people.warm()
    (process,) = FakeProcess.made
    warm = people.intents.dispatcher.warm
    for found in (Pace(Speed.GO), *2 * [Pace(Speed.STEP, every_ns=60 * NS_PER_S)]):
        monkeypatch.setattr(warm_job, "pace", lambda *_, now=found, **__: now)
        people.now(lambda: warm.on_tick("bcache0"))
    assert process.commands[-2:] == ["go", "hold"]
    monkeypatch.setattr(warm_job, "pace", lambda *_, **__: Pace(Speed.STEP, every_ns=1))
    people.now(lambda: warm.on_tick("bcache0"))
    assert process.commands[-1] == "step"


@pytest.mark.parametrize("mode", list(Mode))
def test_garbage_is_collected_where_the_worker_asks_for_it_only_in_enforce(
    people: People, mode: Mode
) -> None:
    volume = people.intents.volume
    volume.loop.set_mode(mode, "test")
    people.warm()
    (process,) = FakeProcess.made
    (start,) = (each for each in process.sent if each.get("command") == "start")
    assert (start["burst"] > 0) == (mode is Mode.ENFORCE)
    people.hears(process, "burst", collects=True)
    people.now(volume.loop.settled().result)
    assert volume.sysfs.log.count(("trigger_gc", "1")) == (mode is Mode.ENFORCE)


def test_people_see_that_it_waits_for_the_collection(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_job, "pace", lambda *_, **__: Pace(Speed.GO))
    people.warm()
    (process,) = FakeProcess.made
    people.now(lambda: people.intents.dispatcher.warm.on_tick("bcache0"))
    people.hears(process, "burst", collects=True)
    (job,) = people.jobs
    assert (job.state, job.why) == ("waiting", "the cache is prepared for the next part")
    people.hears(process, "progress")
    assert [(job.state, job.why) for job in people.jobs] == [("reading", "")]


def test_it_waits_where_users_misses_are_promoted_more_often_beside_it(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = people.intents.volume.loop.promoted
    watch.others, watch.holds = 100, 3
    people.warm()
    (process,) = FakeProcess.made
    warm = people.intents.dispatcher.warm
    monkeypatch.setattr(warm_job, "pace", lambda *_, **__: Pace(Speed.GO))
    people.now(lambda: warm.on_tick("bcache0"))
    monkeypatch.setattr(PromotionWatch, "why", lambda *_: "too many")
    watch.others, watch.holds = 310, 5
    people.now(lambda: warm.on_tick("bcache0"))
    (job,) = people.jobs
    assert (process.commands[-2:], job.state, job.why) == (["go", "hold"], "waiting", "too many")
    assert (job.other_promotions, job.promotion_holds) == (210, 2)
    watch.others = None
    people.now(lambda: warm.on_tick("bcache0"))
    assert people.jobs[0].other_promotions is None


def test_what_its_reads_bring_in_is_told_from_users(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(PromotionWatch, "on_reads", lambda _, __, reads: seen.append(reads))
    monkeypatch.setattr(PromotionWatch, "on_ended", lambda *_: seen.append("ended"))
    people.warm()
    people.warm("/srv/b")
    assert people.job(2, "cancel")[0]
    (process, _) = FakeProcess.made
    people.hears(process, "progress", touched=9, brought=3, pending=2)
    assert seen == [BlockReads(9, 3, 2)], "a job that waits for its turn has brought nothing"
    people.hears(process, "done", phase="check", checked=1, hits=1)
    assert seen[1:] == [BlockReads(), "ended"]


def test_each_look_at_a_volume_is_a_look_at_its_promotions(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(PromotionWatch, "on_frame", lambda _, frame: seen.append(frame))
    people.intents.tick()
    assert seen == [people.intents.volume.loop.state.current_frame]


def test_a_job_is_paused_resumed_and_cancelled(people: People) -> None:
    people.warm()
    assert people.job(1, "pause") == (True, "job 1 is paused")
    assert str(people.jobs[0].state) == "paused"
    assert people.job(1, "resume") == (True, "job 1 goes on")
    assert str(people.jobs[0].state) != "paused"
    ok, text = people.job(1, "cancel")
    assert (ok, text) == (True, "job 1 is cancelled; what is in the cache stays there")
    assert FakeProcess.made[0].ended
    assert people.job(1, "cancel")[1].startswith("no job 1 is under way")


def test_jobs_of_a_volume_run_one_after_the_other(people: People) -> None:
    people.warm("/srv/a")
    assert people.warm("/srv/b").outcome.endswith(", after job 1")
    first, second = FakeProcess.made
    assert second.ended, "it holds a process while it waits"
    people.hears(first, "done", phase="check", checked=1, hits=1)
    third = until_begun(people, 2)
    assert third.sent[0] == {"path": "/srv/b"}
    assert third.commands[0] == "start"


def test_a_job_begins_that_another_has_overtaken_while_its_turn_came(people: People) -> None:
    """The second one takes long to open, and reads while the third one opens its file again."""
    first, slow = one_takes_long_to_open(people)
    FakeProcess.first = None
    people.hears(first, "done", phase="check", checked=1, hits=1)
    people.now(lambda: slow.events.put_nowait(OPENED))
    assert until_begun(people, 1) is slow
    people.now(lambda: FakeProcess.made[3].events.put_nowait(OPENED))
    until_waits(people, "/srv/b", "after job 2")
    FakeProcess.first = OPENED
    people.hears(slow, "done", phase="check", checked=1, hits=1)
    assert until_begun(people, 4).sent[0] == {"path": "/srv/b"}


def test_a_bug_as_its_turn_comes_keeps_no_other_job_waiting(people: People) -> None:
    assert all(people.warm(path).ok for path in ("/srv/a", "/srv/b", "/srv/c"))
    FakeProcess.first = {**OPENED, "bytes": "many"}
    people.hears(FakeProcess.made[0], "failed", text="it was deleted")
    assert [job.why for job in people.jobs[1:]] == ["internal error: TypeError"] * 2


def test_the_job_begins_first_that_was_asked_for_first(people: People) -> None:
    """Not the one whose file was opened first."""
    first, slow = one_takes_long_to_open(people)
    people.now(lambda: slow.events.put_nowait(OPENED))
    until_waits(people, "/srv/slow", "after job 1")
    people.hears(first, "done", phase="check", checked=1, hits=1)
    assert until_begun(people, 3).sent[0] == {"path": "/srv/slow"}


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"event": "failed", "text": "/srv/a is no regular file"}, "is no regular file"),
        ({}, "the reading process has ended"),
        ({**OPENED, "bytes": 0}, "there is nothing to warm: 4 KiB compressed"),
        ({**OPENED, "bytes": 1 << 50}, "do not fit"),
    ],
)
def test_a_target_that_cannot_be_warmed_is_answered(
    people: People, event: dict[str, Any], text: str
) -> None:
    FakeProcess.first = event
    found = people.warm()
    assert (found.ok, text in found.outcome) == (False, True), found.outcome
    assert FakeProcess.made[0].ended
    assert people.jobs == ()


@pytest.mark.parametrize(
    ("names", "text"),
    [((), "is not on a cached volume"), (("bcache0", "bcache1"), "is spread over")],
)
def test_a_file_elsewhere_is_refused(
    people: People, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], text: str
) -> None:
    monkeypatch.setattr(warm_intents, "cached_volumes_below", lambda *_: names)
    found = people.warm()
    assert (found.ok, text in found.outcome) == (False, True), found.outcome


def test_a_file_whose_place_on_a_loop_device_is_unknown_is_refused_for_that(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dm_on_loop(people.intents.volume.loop.writer.sysfs.root)
    FakeProcess.first = {**OPENED, "devno": ON_LOOP}
    monkeypatch.setattr(warm_intents, "cached_volumes_below", lambda *_: ())
    found = people.warm("/mnt/a")
    assert not found.ok
    assert found.outcome.startswith("/mnt/a is on loop0, a loop device of /srv/image; ")


def test_a_failure_while_it_reads_is_shown(people: People) -> None:
    people.warm()
    process = FakeProcess.made[0]
    failed = {"event": "failed", "text": "the file was deleted"}
    people.now(lambda: process.events.put_nowait(failed))
    (job,) = people.jobs
    assert (job.state, job.why) == (JobState.FAILED, "the file was deleted")


def test_a_process_that_hangs_while_it_reads_blocks_no_other_job(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    people.warm("/srv/a")
    people.warm("/srv/b")
    monkeypatch.setattr(warm_job, "SILENT_S", 0.05)
    people.hears(FakeProcess.made[0], "progress", read=MIB)
    assert until_begun(people, 2).sent[0] == {"path": "/srv/b"}
    job = people.jobs[0]
    assert (job.state, job.why) == (
        JobState.FAILED,
        "the reading process has sent nothing for 0.05 s: a device or a file system may hang:"
        " see dmesg",
    )
    assert FakeProcess.made[0].ended


def test_a_range_names_its_volume(people: People) -> None:
    found = people.intents.ask(IntentKind.WARM, "bcache0", from_bytes=0, to_bytes=MIB)
    assert found.ok, found.outcome
    assert FakeProcess.made[0].sent[0]["device"] == "/dev/bcache0"
    beyond = people.intents.ask(IntentKind.WARM, "bcache0", from_bytes=0, to_bytes=1 << 60)
    assert "ends at" in beyond.outcome


def test_saved_ranges_are_warmed_hottest_first_on_the_volume_of_that_uuid(people: People) -> None:
    found = restore(people, uuid=UUID)
    assert (found.ok, "warms 2 saved ranges" in found.outcome) == (True, True), found.outcome
    assert FakeProcess.made[0].sent[0] == {
        "device": "/dev/bcache0",
        "devno": (252, 0),
        "ranges": [(8 * MIB, 10 * MIB), (0, MIB)],
    }


def test_ranges_of_another_volume_need_its_name(people: People) -> None:
    found = restore(people, uuid="another")
    assert "no volume here has the uuid another" in found.outcome
    assert "--volume NAME" in found.outcome
    assert restore(people, "bcache0").ok


def test_ranges_beyond_the_volume_are_refused(people: People) -> None:
    found = restore(people, uuid=UUID, ranges="900")
    assert "the ranges reach to 2.3 GiB, but" in found.outcome
    assert "bcache0 ends at 2 GiB" in found.outcome


def test_what_is_hot_is_sent_to_the_client_alone(people: People) -> None:
    early = people.intents.ask(IntentKind.HOT)
    assert (early.ok, "no use of it was sampled yet" in early.outcome) == (False, True)
    people.intents.volume.loop.on_record(ReuseSamples("bcache0", 1, (0, 2 * 256, 2 * 2560)))

    async def ask() -> IntentOutcome:
        _, outcome = people.intents.dispatcher.submit(IntentKind.HOT, "bcache0", {}, "jo")
        return await outcome

    found = people.intents.run(ask())
    assert found.text.startswith("bcache0: 3 MiB in 3 ranges, observed for ")
    assert (found.data["ranges"], found.data["uuid"]) == ("a,-a,-2", UUID)
    assert (found.data["size_bytes"], found.data["chunk_bytes"]) == (2 << 30, MIB)
    assert people.intents.log.done[-1] == (2, True, found.text)


def test_jobs_end_with_their_volume(people: People) -> None:
    people.warm()
    people.intents.daemon.volumes.clear()
    people.now(people.intents.dispatcher.warm.poll)
    assert FakeProcess.made[0].ended


def test_jobs_of_a_volume_that_is_gone_are_forgotten(people: People) -> None:
    warm = people.intents.dispatcher.warm
    people.warm()
    people.warm("/srv/b")
    people.hears(FakeProcess.made[0], "failed", text="the file was deleted")
    people.intents.daemon.volumes.clear()
    for _ in range(2):
        people.now(warm.poll)
    assert [warm.job(number) for number in (1, 2)] == [None, None]


def test_a_job_that_is_cancelled_while_its_turn_begins_reads_nothing(people: People) -> None:
    people.warm("/srv/a")
    people.warm("/srv/b")
    FakeProcess.first = None
    people.hears(FakeProcess.made[0], "failed", text="the file was deleted")
    assert people.job(2, "cancel")[0]
    begun = FakeProcess.made[2]
    people.now(lambda: begun.events.put_nowait(dict(OPENED)))
    assert [job.state for job in people.jobs] == [JobState.FAILED, JobState.CANCELLED]
    assert begun.commands == []
    assert people.intents.volume.loop.state.arbiter.warm_cutoff_bytes is None


@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("event", [{"event": "opened"}, {"event": "failed"}, {"devno": 1}])
def test_a_worker_of_another_release_fails_its_job(
    people: People, event: dict[str, Any], queued: bool
) -> None:
    people.warm("/srv/a")
    if queued:
        people.warm("/srv/b")
        FakeProcess.first = event
        people.hears(FakeProcess.made[0], "failed", text="the file was deleted")
    else:
        people.now(lambda: FakeProcess.made[0].events.put_nowait(event))
    assert people.jobs[-1].state is JobState.FAILED
    assert "speaks like another release" in people.jobs[-1].why
    assert FakeProcess.made[-1].ended
