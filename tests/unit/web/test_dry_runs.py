# SPDX-License-Identifier: GPL-2.0-only
"""Policies that are tried on the history: over HTTP, and in turn."""

from __future__ import annotations

import asyncio
from contextlib import closing
from queue import Queue
from typing import Any, Final

import pytest
from starlette.concurrency import run_in_threadpool

from ebbgate.model.status_json import status_to_json
from ebbgate.replay import history
from ebbgate.replay.compare import KERNELS
from ebbgate.store.db import Store
from ebbgate.units import HOUR_NS
from ebbgate.web import policy_service
from ebbgate.web.errors import ApiError
from ebbgate.web.models.policies import DryRunRequest
from tests.builders import live_status
from tests.unit.web.web_fixture import WebHarness, complaint

NAS: Final = "version: 1\nname: mine\nstrategies:\n  - stream_bypass: {}\n"


def test_dry_run_lists_differences(still: WebHarness) -> None:
    asked = {"volume": "bcache0", "text": NAS, "against": "adaptive", "hours": 0.25}
    answer = still.post("/policies/dry-run", asked)
    assert answer.status == 200, answer.body
    schema = {"$ref": "#/components/schemas/DryRunResult"}
    assert complaint(answer.json, schema) == ""
    assert answer.json["frames"] > 600
    assert {each["setting"] for each in answer.json["differences"]} == {"destage"}
    assert answer.json["until_unix_s"] - answer.json["from_unix_s"] == 900


def test_the_present_policy_is_the_one_that_the_daemon_tells(web: WebHarness) -> None:
    """It may be chosen by the uuid of the volume, which the server cannot read everywhere."""
    text = "version: 1\nname: by-uuid\nmatch: {volume: 0b1e5000-0000}\nstrategies: []\n"
    web.policies.mkdir(exist_ok=True)
    (web.policies / "by-uuid.yaml").write_text(text)
    with closing(Store.open(web.config.history_path)) as store:
        status = live_status(policy="by-uuid")
        store.set_live("bcache0", status_to_json(status), web.now_ns)
    asked = {"volume": "bcache0", "text": NAS, "against": None, "hours": 0.25}
    answer = web.post("/policies/dry-run", asked)
    assert answer.status == 200, answer.body
    assert answer.json["destage_s"]["before"].keys() == {KERNELS}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"hours": 25}, 422),
        ({"hours": 0}, 422),
        ({"volume": "sda"}, 404),
        ({"against": "nobody"}, 404),
        ({"against": "/etc/passwd"}, 404),
        ({"text": "version: 1\nname: mine\nrulez: []\n"}, 422),
    ],
)
def test_invalid_dry_run_is_refused(still: WebHarness, change: dict[str, Any], status: int) -> None:
    asked = {"volume": "bcache0", "text": NAS, "against": None, "hours": 1, **change}
    answer = still.post("/policies/dry-run", asked)
    assert answer.status == status, answer.body
    if "text" in change:
        assert answer.error["place"] == {"file": "the policy", "line": 3, "column": 1}


class SlowDryRuns:
    """Dry runs that end when they are told to; `ran`: their hours, in the order of their turns."""

    def __init__(self, web: WebHarness, patch: pytest.MonkeyPatch) -> None:
        self.ran: list[float] = []
        self._web = web
        self._ends: Queue[None] = Queue()
        self._steps: list[object] = []
        self._run = history.run
        patch.setattr(history, "run", self._slow)
        patch.setattr(policy_service, "run_in_threadpool", self._counted)

    async def ask(self, *wanted: tuple[str, float]) -> list[asyncio.Task[int]]:
        """Ask for a dry run of each of these clients, over so many hours; return once all wait."""
        asked = []
        for client, hours in wanted:
            asked.append(asyncio.create_task(self._status(client, hours)))
            while len(self._steps) < len(asked):
                await asyncio.sleep(0.01)
        return asked

    def end(self, count: int) -> None:
        for _ in range(count):
            self._ends.put(None)

    async def _status(self, client: str, hours: float) -> int:
        wanted = DryRunRequest(volume="bcache0", text=NAS, hours=hours)
        try:
            await self._web.api.dry_runs.run(wanted, client)
        except ApiError as error:
            return error.status
        return 200

    async def _counted(self, *args: Any) -> Any:
        found = await run_in_threadpool(*args)
        # With this step a dry run that was checked is in the queue.
        self._steps.append(found)
        return found

    def _slow(self, *args: Any) -> Any:
        self.ran.append(round((args[4] - args[3]) / HOUR_NS, 3))
        self._ends.get(timeout=20.0)
        return self._run(*args)


def test_dry_runs_of_a_client_keep_no_other_from_its_turn(
    still: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowDryRuns(still, monkeypatch)

    async def scene() -> list[int]:
        asked = await slow.ask(("a", 0.1), ("a", 0.11), ("a", 0.12), ("b", 0.13))
        slow.end(3)
        return await asyncio.gather(*asked)

    assert asyncio.run(scene()) == [200, 200, 429, 200]
    assert slow.ran == [0.1, 0.13, 0.11]


def test_a_dry_run_that_waits_is_refused_when_the_server_ends(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowDryRuns(web, monkeypatch)

    async def scene() -> list[int]:
        asked = await slow.ask(("a", 0.1), ("b", 0.11))
        web.api.close()
        assert await asked[1] == 503
        slow.end(1)
        return await asyncio.gather(*asked)

    assert asyncio.run(scene()) == [200, 503]
    assert slow.ran == [0.1]


def test_a_dry_run_that_takes_too_long_ends_with_the_next_step(
    still: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_service, "RUN_S", 0.0)
    asked = {"volume": "bcache0", "text": NAS, "against": "adaptive", "hours": 0.25}
    answer = still.post("/policies/dry-run", asked)
    assert answer.status == 422, answer.body
    assert answer.error["message"] == "the policies cannot be compared within 0 s"
    assert "fewer hours" in answer.error["hint"]
    monkeypatch.setattr(policy_service, "RUN_S", 60.0)
    assert still.post("/policies/dry-run", asked).status == 200
