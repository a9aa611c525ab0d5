# SPDX-License-Identifier: GPL-2.0-only
"""Carries out requests: checked requests in, awaited outcomes back.

I/O: through the registry of overrides, the volumes' loops and the recorder. On the event loop: each
request is a task of its own with a deadline; what takes long is awaited.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from ebbgate.background import BackgroundWorker
from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.absent_choices import AbsentChoices
from ebbgate.daemon.absent_volumes import Presence
from ebbgate.daemon.advice_intents import AdviceIntents, AdviceTarget
from ebbgate.daemon.override_intents import OverrideIntents
from ebbgate.daemon.override_registry import OverrideRegistry
from ebbgate.daemon.pin_intents import PinIntents
from ebbgate.daemon.pin_registry import PinRegistry
from ebbgate.daemon.policy_intents import PolicyIntents, PolicyTarget
from ebbgate.daemon.warm_intents import WarmIntents
from ebbgate.errors import ActuationError, EbbgateError, NotFound, Unavailable
from ebbgate.intents.validation import Intent, check_intent
from ebbgate.log_messages.service import REQUEST_DONE, REQUEST_FAILED, REQUEST_STATUS_NOT_SENT
from ebbgate.model.override import IntentKind, OverrideKind
from ebbgate.model.pin import CACHE_SHARE_MAX
from ebbgate.model.volume import Mode, Volume
from ebbgate.store.intent_rows import IntentRow
from ebbgate.text import clean_lines, clean_text

_LOG = logging.getLogger(__name__)
DEADLINE_S: Final = 30.0
"""An accepted request that takes longer has failed."""
_SETTLED_S: Final = 10.0
"""How long to wait for knob writes; one that takes longer hangs in the kernel."""
_VISIBLE_S: Final = 0.5
"""How long an answer waits until the history has the new state: readers can delay that."""
ENDED: Final = "ebbgated ended before this was finished"


class Target(AdviceTarget, PolicyTarget, Protocol):
    """What requests act on; implemented by the daemon."""

    def presence(self) -> Presence | None:
        """Return what the last look at all devices found; None while that is not known."""

    def restore_volume(self, name: str) -> str:
        """Restore a volume's knobs and leave it alone."""

    async def publish(self, names: Collection[str]) -> None:
        """Send the status of these volumes to the recorder."""


class IntentLog(Protocol):
    """Records requests and their outcomes; implemented by the recorder."""

    def intent(self, intent: IntentRow) -> None:
        """Record a request that was accepted."""

    def intent_done(self, number: int, ok: bool, outcome: str) -> None:
        """Record its outcome."""

    def written(self) -> Future[None]:
        """Return a future that is done once the history has everything so far; it raises OSError or
        EbbgateError if that cannot be.
        """


@dataclass(frozen=True, slots=True)
class IntentOutcome:
    """`text`: what was done, or why not and the next step, in sentences.

    `data`: what was asked for; only the client gets it.
    """

    ok: bool
    text: str
    data: Mapping[str, str | int] = field(default_factory=dict)


class IntentDispatcher:
    """Gives each request to the part that carries it out.

    `first_number`: of the first request; later ones count on from it. `pin_share`: how much of a
    cache may be pinned.
    """

    def __init__(
        self,
        target: Target,
        registry: OverrideRegistry,
        log: IntentLog,
        history: Path,
        first_number: int,
        pin_share: float = CACHE_SHARE_MAX,
    ) -> None:
        self.registry = registry
        self.deadline_s = DEADLINE_S
        self._target = target
        self._log = log
        self._next = first_number
        self._tasks: set[asyncio.Task[IntentOutcome]] = set()
        background = BackgroundWorker("requests")
        self._overrides = OverrideIntents(registry)
        policies = PolicyIntents(target, background)
        self.warm = WarmIntents(target.sysfs, target.volumes)
        pins = PinRegistry(registry.writer, registry.wall_ns, registry.now_ns)
        self.pins = PinIntents(
            target.sysfs, target.volumes, pins, self.warm, self._take_number, pin_share
        )
        self.absent = AbsentChoices(registry, pins, target.presence)
        advice = AdviceIntents(target, history, self._overrides, background)
        self._each: Mapping[str, Callable[[Intent, VolumeLoop], Awaitable[str]]] = {
            IntentKind.MODE: self._mode,
            IntentKind.HOLD: self._hold,
            IntentKind.CLEAN: self._clean,
            IntentKind.RESTORE: self._restore,
            IntentKind.RELEASE: self._release,
            IntentKind.DRAIN: self._overrides.drain,
            IntentKind.SET: self._overrides.set,
            IntentKind.APPLY: advice.apply,
        }
        self._once: Mapping[str, Callable[[Intent], Awaitable[str]]] = {
            IntentKind.UNDO: advice.undo,
            IntentKind.POLICY_SAVE: policies.save,
            IntentKind.POLICY_REMOVE: policies.remove,
            IntentKind.WARM: self.warm.begin,
            IntentKind.JOB: self.warm.control,
            IntentKind.PIN: self.pins.pin,
            IntentKind.UNPIN: self.pins.unpin,
            IntentKind.FORGET: self.absent.forget,
        }

    # ---- from the socket -----------------------------------------------------------------------
    def submit(
        self, kind: str, volume: str | None, args: Mapping[str, Any], who: str
    ) -> tuple[int, Awaitable[IntentOutcome]]:
        """Begin a request; returns its number and its outcome, which is never an exception.

        Raises EbbgateError for one that is refused: nothing was begun or recorded then.
        """
        checked = check_intent(kind, self._volume(volume), args)
        intent = Intent(self._take_number(), IntentKind(kind), volume, who, checked)
        given = {name: value for name, value in args.items() if value is not None}
        self._log.intent(IntentRow(intent.id, kind, volume, given, who, time.time_ns()))
        task = asyncio.get_running_loop().create_task(self._answered(intent))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return intent.id, task

    async def stop(self) -> None:
        """End and answer the requests that are under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.pins.stop()
        await self.warm.stop()
        await self._saved_soon()

    def _take_number(self) -> int:
        self._next += 1
        return self._next - 1

    async def _saved_soon(self) -> None:
        """Wait a moment until no restart can put an override that is over in force again."""
        with suppress(TimeoutError, EbbgateError):
            async with asyncio.timeout(_VISIBLE_S):
                await self.registry.saved()

    # ---- one request ---------------------------------------------------------------------------
    async def _answered(self, intent: Intent) -> IntentOutcome:
        try:
            async with asyncio.timeout(self.deadline_s):
                outcome = await self._carried_out(intent)
        except TimeoutError:
            await self._saved_soon()
            outcome = IntentOutcome(
                False, f"it was not finished within {self.deadline_s:g} s\n  see ebbgate status"
            )
        except EbbgateError as error:
            outcome = IntentOutcome(False, str(error))
        except asyncio.CancelledError:
            outcome = IntentOutcome(False, ENDED)
            self._record(intent, outcome)
            return outcome
        except Exception as error:
            # A bug in one request ends neither the daemon nor the connection.
            _LOG.exception(REQUEST_FAILED, intent.id, intent.kind)
            name = type(error).__name__
            outcome = IntentOutcome(
                False, f"internal error: {name}\n  please report it with the log of ebbgated"
            )
        return await self._made_visible(intent, outcome)

    async def _made_visible(self, intent: Intent, outcome: IntentOutcome) -> IntentOutcome:
        """Record the outcome; return once it and the state that it made can be read.

        At the end of the daemon it waits for neither: what was done is still answered.
        """
        outcome, ends = replace(outcome, text=clean_lines(outcome.text)), False
        try:
            await self._target.publish(self._names(intent.volume))
        except asyncio.CancelledError:
            ends = True
        except Exception:
            _LOG.exception(REQUEST_STATUS_NOT_SENT, intent.id)
        self._record(intent, outcome)
        if ends:
            return outcome
        try:
            async with asyncio.timeout(_VISIBLE_S):
                await asyncio.wrap_future(self._log.written())
        except asyncio.CancelledError:
            return outcome
        except (TimeoutError, OSError, EbbgateError) as error:
            _LOG.debug("request %d is not in the history yet: %s", intent.id, error)
            text = f"{outcome.text}\nit is not in the history yet: ebbgate status may be old"
            outcome = replace(outcome, text=text)
        return outcome

    def _record(self, intent: Intent, outcome: IntentOutcome) -> None:
        self._log.intent_done(intent.id, outcome.ok, outcome.text)
        text = outcome.text.replace("\n", " | ")
        _LOG.info(REQUEST_DONE, intent.id, intent.kind, intent.who, text)

    async def _carried_out(self, intent: Intent) -> IntentOutcome:
        """Return what was done. Raises EbbgateError."""
        if intent.kind == IntentKind.HOT:
            return IntentOutcome(True, *await self.warm.hot_set(intent))
        if intent.kind in self._once:
            return IntentOutcome(True, await self._once[intent.kind](intent))
        each = self._each[intent.kind]
        loops = [self._target.volumes[name] for name in self._names(intent.volume)]
        if intent.volume is not None and not loops:
            raise NotFound(f"{intent.volume} is gone", "see ebbgate status")
        # At the same time: a volume whose knobs hang delays no other one.
        done = await asyncio.gather(*(each(intent, loop) for loop in loops), return_exceptions=True)
        failed = [one for one in done if isinstance(one, BaseException)]
        if len(failed) == len(done) == 1:
            raise failed[0]
        if failed:
            raise _together(done)
        return IntentOutcome(True, "; ".join(map(str, done)) or "no volumes here")

    def _names(self, volume: str | None) -> list[str]:
        """Return the volumes that are meant: all without a name; none if it is gone."""
        found = self._target.volumes
        if volume is None:
            return list(found)
        return [name for name, loop in found.items() if loop.volume.is_called(volume)][:1]

    def _volume(self, volume: str | None) -> Volume | None:
        """Raises NotFound."""
        if volume is None:
            return None
        names = self._names(volume)
        if not names:
            raise NotFound(f"no such volume: {clean_text(volume)}", "see ebbgate status")
        return self._target.volumes[names[0]].volume

    # ---- kinds ---------------------------------------------------------------------------------
    async def _mode(self, intent: Intent, loop: VolumeLoop) -> str:
        mode, name = intent.args.mode, loop.volume.name
        why = f"{intent.who} requested {mode}"
        if mode is Mode.ENFORCE:
            # A mode that lets ebbgate do more is on the disk before it is in force.
            await self.registry.keep_mode(name, mode)
            self.registry.end_all(name, why, OverrideKind.HOLD)
            loop.set_mode(mode, f"mode {mode} requested by a user")
            await self.registry.saved()
            return f"{name}: mode {mode}"
        self.registry.end_all(name, why)
        loop.set_mode(mode, f"mode {mode} requested by a user")
        return await self._ended(loop, mode, f"{name}: mode {mode}")

    async def _ended(self, loop: VolumeLoop, mode: Mode, text: str) -> str:
        """Keep a mode that lets ebbgate do less, which is in force already. Raises EbbgateError."""
        self.registry.take_mode(loop.volume.name, mode)
        kept = [self.registry.saved(), self.registry.keep_mode(loop.volume.name, mode)]
        failed = await asyncio.gather(*kept, return_exceptions=True)
        await _settled(loop)
        _check_kept(text, failed)
        return text

    async def _hold(self, intent: Intent, loop: VolumeLoop) -> str:
        name = loop.volume.name
        if intent.args.on:
            return await self._overrides.hold(intent, loop)
        done = "hold ended" if loop.frozen else "was not held"
        self.registry.end_all(name, f"{intent.who} ended the hold", OverrideKind.HOLD)
        loop.freeze(False)
        await self.registry.saved()
        return f"{name}: {done}"

    async def _clean(self, intent: Intent, loop: VolumeLoop) -> str:
        return loop.clean(intent.args.within_ns, intent.who)

    async def _restore(self, intent: Intent, loop: VolumeLoop) -> str:
        name = loop.volume.name
        self.registry.end_all(name, f"{intent.who} requested restore")
        text = await self._ended(loop, Mode.ADVISE, self._target.restore_volume(name))
        if loop.writer.unrestored:
            left = ", ".join(sorted(entry.knob for entry in loop.writer.unrestored))
            raise ActuationError(f"{name}: not restored: {left}", "see the log of ebbgated")
        return text

    async def _release(self, intent: Intent, loop: VolumeLoop) -> str:
        text = await self._overrides.release(intent, loop)
        await _settled(loop)
        return text


async def _settled(loop: VolumeLoop) -> None:
    """Wait for the knob writes that were begun. Raises ActuationError if they hang."""
    try:
        async with asyncio.timeout(_SETTLED_S):
            await asyncio.wrap_future(loop.settled())
    except TimeoutError as error:
        raise ActuationError(
            f"{loop.volume.title}: a knob write hangs until the kernel answers",
            "see ebbgate status",
        ) from error


def _check_kept(done: str, results: Collection[BaseException | None]) -> None:
    """Raises Unavailable for what is in force but could not be kept for a restart."""
    for error in results:
        if isinstance(error, EbbgateError):
            text = f"{done}, but a restart of ebbgated will forget it: {error.message}"
            raise Unavailable(text, error.hint) from error
        if error is not None:
            raise error


def _together(done: Collection[str | BaseException]) -> EbbgateError:
    """Return one error for several volumes. Raises what is no EbbgateError."""
    parts = []
    for one in done:
        if isinstance(one, BaseException) and not isinstance(one, EbbgateError):
            raise one
        parts.append(one.message if isinstance(one, EbbgateError) else str(one))
    return ActuationError("; ".join(parts), "see ebbgate status")
