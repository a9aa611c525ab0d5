# SPDX-License-Identifier: GPL-2.0-only
"""A client cannot keep others from a place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from ebbgate.web import places as module
from ebbgate.web.errors import ApiError
from ebbgate.web.places import Places, Turns


def refused(places: Places, client: str) -> bool:
    try:
        with places.hold(client):
            return False
    except ApiError as error:
        assert (error.status, str(error)) == (503, "busy")
        return True


def test_a_client_has_half_of_the_places_and_leaves_the_others() -> None:
    places = Places(4, "busy")
    with places.hold("uid 1"), places.hold("uid 1"):
        assert refused(places, "uid 1")
        with places.hold("uid 2"):
            assert not refused(places, "uid 3")
            with places.hold("uid 3"):
                assert refused(places, "uid 2")
                assert refused(places, "uid 4")
            assert not refused(places, "uid 4")
    assert not refused(places, "uid 1")


def test_a_place_is_given_back_after_an_error() -> None:
    places = Places(2, "busy")
    with pytest.raises(OSError, match="gone"), places.hold("uid 1"):
        raise OSError("gone")
    assert not refused(places, "uid 2")


# ---- turns ---------------------------------------------------------------------------------------
class Clients:
    """Requests of clients, each of which keeps its turn until it is told to end."""

    def __init__(self, wait_s: float = 10.0) -> None:
        self.turns = Turns("dry runs", wait_s)
        self.order: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    async def ask(self, name: str) -> asyncio.Task[None]:
        """Begin the request NAME of the client who has the first letter of it."""
        task = asyncio.create_task(self._hold(name))
        await settled()
        return task

    async def end(self, name: str, steps: int = 5) -> None:
        self._ends[name].set()
        await settled(steps)

    async def _hold(self, name: str) -> None:
        self._ends[name] = asyncio.Event()
        async with self.turns.hold(name[0]):
            self.order.append(name)
            await self._ends[name].wait()


async def settled(steps: int = 5) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


def run(scene: Callable[[Clients], Awaitable[None]], wait_s: float = 10.0) -> None:
    async def play() -> None:
        await scene(Clients(wait_s))

    asyncio.run(play())


def test_one_request_has_its_turn_and_the_next_one_follows_it() -> None:
    async def scene(clients: Clients) -> None:
        first, second = await clients.ask("a1"), await clients.ask("b1")
        assert clients.order == ["a1"]
        await clients.end("a1")
        assert clients.order == ["a1", "b1"]
        await clients.end("b1")
        await asyncio.gather(first, second)

    run(scene)


def test_a_client_that_asks_again_and_again_keeps_no_other_from_its_turn() -> None:
    async def scene(clients: Clients) -> None:
        for name in ("a1", "a2", "b1"):
            await clients.ask(name)
        await clients.end("a1")
        for name in ("a3", "c1"):
            await clients.ask(name)
        await clients.end("b1")
        await clients.end("c1")
        assert clients.order == ["a1", "b1", "c1", "a2"]
        await clients.ask("b2")
        await clients.end("a2")
        assert clients.order[4:] == ["b2"]

    run(scene)


def test_a_client_has_one_turn_and_one_request_that_waits() -> None:
    async def scene(clients: Clients) -> None:
        for name in ("a1", "a2"):
            await clients.ask(name)
        error = (await clients.ask("a3")).exception()
        assert isinstance(error, ApiError)
        assert (error.status, error.retry_after_s) == (429, 30)
        assert str(error) == "2 dry runs of yours are not over yet"
        assert error.body.error.hint == "wait for the first one"
        assert not (await clients.ask("b1")).done()

    run(scene)


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAITING_MAX", 2)

    async def scene(clients: Clients) -> None:
        for name in ("a1", "b1", "c1"):
            await clients.ask(name)
        error = (await clients.ask("d1")).exception()
        assert isinstance(error, ApiError)
        assert (error.status, str(error)) == (503, "2 dry runs wait already")
        assert (error.retry_after_s, error.body.error.hint) == (30, "try again in a minute")
        await clients.end("a1")
        assert not (await clients.ask("d2")).done()

    run(scene)


def test_a_turn_that_does_not_come_in_time_is_an_error() -> None:
    async def scene(clients: Clients) -> None:
        await clients.ask("a1")
        with pytest.raises(ApiError, match=r"others were first for 0\.01 s") as caught:
            await (await clients.ask("b1"))
        assert (caught.value.status, caught.value.retry_after_s) == (503, 30)
        await clients.end("a1")
        await clients.ask("c1")
        assert clients.order == ["a1", "c1"], "nobody holds the turn that did not come"

    run(scene, wait_s=0.01)


@pytest.mark.parametrize("has_turn", [False, True])
def test_a_request_that_is_cancelled_passes_its_turn_on(has_turn: bool) -> None:
    async def scene(clients: Clients) -> None:
        await clients.ask("a1")
        second = await clients.ask("b1")
        await clients.ask("c1")
        if has_turn:
            # Its turn comes and it is cancelled before it runs again.
            await clients.end("a1", steps=1)
        second.cancel()
        with suppress(asyncio.CancelledError):
            await second
        await clients.end("a1")
        assert clients.order == ["a1", "c1"]

    run(scene)


def test_a_turn_is_passed_on_after_an_error() -> None:
    async def scene(clients: Clients) -> None:
        with pytest.raises(OSError, match="gone"):
            async with clients.turns.hold("a"):
                raise OSError("gone")
        await clients.ask("b1")
        assert clients.order == ["b1"]

    run(scene)


def test_clients_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED_MAX", 1)

    async def scene(clients: Clients) -> None:
        for name in ("a1", "b1", "c1"):
            await clients.ask(name)
        for name in ("a1", "b1"):
            await clients.end(name)
        for name in ("b2", "a2"):
            await clients.ask(name)
        await clients.end("c1")
        assert clients.order[3:] == ["b2"], "neither is known to have had a turn"

    run(scene)


def test_those_who_wait_are_refused_when_the_server_ends() -> None:
    async def scene(clients: Clients) -> None:
        await clients.ask("a1")
        second = await clients.ask("b1")
        clients.turns.close()
        for late in (second, await clients.ask("c1")):
            with pytest.raises(ApiError, match="ebbgate-web ends"):
                await late
        await clients.end("a1")
        assert clients.order == ["a1"]

    run(scene)
