# SPDX-License-Identifier: GPL-2.0-only
"""A person who warms files on a fake volume. I/O: that of the daemon's part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ebbgate.intents.validation import Intent, IntentArgs
from ebbgate.model.override import IntentKind
from ebbgate.model.warm import JobStatus
from ebbgate.units import MIB
from tests.intent_fixture import Answered, IntentHarness, answer
from tests.waiting import until
from tests.warm_fixture import NO_BLOCKS, OPENED, FakeProcess, turn

UUID = "0b1e5000-0000-4000-8000-000000000001"


class People:
    """Requests, and what people see of the jobs."""

    def __init__(self, intents: IntentHarness) -> None:
        self.intents = intents

    def warm(self, path: str = "/srv/a", **args: Any) -> Answered:
        return self.intents.ask(IntentKind.WARM, None, path=path, **args)

    def job(self, number: int, action: str) -> tuple[bool, str]:
        return answer(self.intents.ask(IntentKind.JOB, None, job=number, action=action))

    @property
    def jobs(self) -> tuple[JobStatus, ...]:
        return self.intents.volume.loop.jobs

    def hears(self, process: FakeProcess, event: str, **fields: Any) -> None:
        """Let the daemon take an event of a worker."""
        known = {"phase": "read", "read": 0, "total": 8 * MIB, "checked": 0, "hits": 0}
        known |= {"elsewhere": 0, "collects": False, **NO_BLOCKS}
        self.now(lambda: process.events.put_nowait({"event": event, **known, **fields}))

    def now(self, act: Callable[[], object]) -> None:
        self.intents.run(turn(act))


def restore(people: People, volume: str | None = None, **args: Any) -> Answered:
    """Chunks 8 and 9, then 0, of the fake volume of 2 GiB with a cache of 1 GiB."""
    given = {"ranges": "8+1,-a", "chunk_bytes": MIB, **args}
    return people.intents.ask(IntentKind.WARM, volume, **given)


def one_takes_long_to_open(people: People) -> tuple[FakeProcess, FakeProcess]:
    """Have job 1 read, job 2 (/srv/slow) open its file and job 3 (/srv/b) wait.

    Return the processes of the first two.
    """
    warm = people.intents.dispatcher.warm

    async def begin(number: int, path: str) -> None:
        await warm.begin(Intent(number, IntentKind.WARM, None, "jo", IntentArgs(path=path)))

    people.intents.run(begin(1, "/srv/a"))
    FakeProcess.first = None
    tasks = []
    people.now(lambda: tasks.append(asyncio.ensure_future(begin(2, "/srv/slow"))))
    FakeProcess.first = OPENED
    people.intents.run(begin(3, "/srv/b"))
    return FakeProcess.made[0], FakeProcess.made[1]


def until_begun(people: People, number: int) -> FakeProcess:
    """Wait until the process of this number reads for a job whose turn has come."""

    def begun() -> bool:
        people.now(lambda: None)
        return len(FakeProcess.made) > number and bool(FakeProcess.made[number].commands)

    until(begun, "the next job to begin")
    return FakeProcess.made[number]


def until_waits(people: People, target: str, why: str) -> None:
    """Wait until the job of a target waits for this reason."""

    def waits() -> bool:
        people.now(lambda: None)
        return any((job.target, job.why) == (target, why) for job in people.jobs)

    until(waits, f"{target} to wait {why}")


def targets(people: People) -> list[str]:
    return [job.target for job in people.jobs]


def opens(size_bytes: int) -> None:
    """Each target that is opened from now on is as large as this."""
    FakeProcess.first = {**OPENED, "bytes": size_bytes}
