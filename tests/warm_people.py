# SPDX-License-Identifier: GPL-2.0-only
"""A person who warms files on a fake volume. I/O: that of the daemon's part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def until_begun(people: People, number: int) -> FakeProcess:
    """Wait until the process of this number reads for a job whose turn has come."""

    def begun() -> bool:
        people.now(lambda: None)
        return len(FakeProcess.made) > number and bool(FakeProcess.made[number].commands)

    until(begun, "the next job to begin")
    return FakeProcess.made[number]


def until_waits(people: People, why: str) -> None:
    """Wait until a job waits for this reason."""

    def waits() -> bool:
        people.now(lambda: None)
        return any(job.why == why for job in people.jobs)

    until(waits, f"a job that waits {why}")


def targets(people: People) -> list[str]:
    return [job.target for job in people.jobs]


def opens(size_bytes: int) -> None:
    """Each target that is opened from now on is as large as this."""
    FakeProcess.first = {**OPENED, "bytes": size_bytes}
