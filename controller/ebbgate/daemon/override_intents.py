# SPDX-License-Identifier: GPL-2.0-only
"""Carries out requests that last: a hold, a knob's value, a drain; and their release.

I/O: through the registry and the volumes' loops. On the event loop; what takes long is awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ebbgate.control.volume_loop import VolumeLoop
from ebbgate.daemon.override_registry import OverrideRegistry
from ebbgate.errors import ActuationError
from ebbgate.intents.validation import Intent
from ebbgate.knobs.settable import beyond_limits, is_trigger
from ebbgate.knobs.values import format_value
from ebbgate.model.override import ActiveOverride, Override, OverrideKind
from ebbgate.model.volume import Kind, Mode
from ebbgate.policy import evaluate
from ebbgate.policy.drain import plan_of, plan_text
from ebbgate.policy.limits import knob_limits
from ebbgate.policy.overrides import unwritable_reason
from ebbgate.policy.strategies import idle_destage
from ebbgate.units import format_ns

Values = Sequence[tuple[str, str]]
"""Knobs with the values that they keep, as the kernel takes them."""


@dataclass(slots=True)
class OverrideIntents:
    """`_changing`: held from the check against the overrides in force until one is added."""

    registry: OverrideRegistry
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def hold(self, intent: Intent, loop: VolumeLoop) -> str:
        """Freeze every knob, for a time or until it is released. Raises EbbgateError."""
        name, for_ns = loop.volume.name, intent.args.for_ns
        async with self._changing:
            override = self._override(OverrideKind.HOLD, intent, name, for_ns)
            self.registry.enforce(await self.registry.keep((override,)))
        return f"{name}: held" + ("" if for_ns is None else f" for {format_ns(for_ns)}")

    async def set(self, intent: Intent, loop: VolumeLoop) -> str:
        """Set a knob. Raises EbbgateError, with nothing changed."""
        args = intent.args
        return await self.set_all(intent, loop, [(args.knob, args.value)])

    async def set_all(
        self, intent: Intent, loop: VolumeLoop, values: Values, after: str = ""
    ) -> str:
        """Set these knobs, all or none of them; return what was done, followed by `after`.

        Raises EbbgateError, with nothing changed.
        """
        name, for_ns = loop.volume.name, intent.args.for_ns
        lasting = [pair for pair in values if not is_trigger(pair[0])]
        async with self._changing:
            _check_writable(loop)
            self._check_no_drain(loop, [knob for knob, _ in lasting])
            mine = {e.override.knob: e.override for e in self._of(name, OverrideKind.SET)}
            before = [mine[knob] for knob, _ in lasting if knob in mine]
            overrides = [
                self._override(OverrideKind.SET, intent, name, for_ns, pair) for pair in lasting
            ]
            kept = await self.registry.keep(overrides) if overrides else ()
            self.registry.enforce(kept)
            written = {each.knob: loop.overrides.first_write(each) for each in kept}
        for knob, _ in values:
            if is_trigger(knob):
                written[knob] = loop.overrides.trigger(knob, intent.who)
        await self._all_written(written, kept, before, name)
        said = [_done(loop, knob, value, for_ns) for knob, value in values]
        return "\n".join([*said, after] if after else said)

    async def _all_written(
        self,
        written: Mapping[str, Future[None]],
        kept: Sequence[Override],
        before: Sequence[Override],
        volume: str,
    ) -> None:
        """Wait until every knob is written. If one cannot be, end all of `kept` and put `before`,
        which they replaced, in force again. Raises ActuationError.
        """
        try:
            for knob, result in written.items():
                try:
                    await asyncio.wrap_future(result)
                except ActuationError as error:
                    text = f"{volume}: {knob} could not be written: {error.message}"
                    raise ActuationError(text) from error
        except BaseException as error:
            why = error.message if isinstance(error, ActuationError) else "it timed out"
            self._take_back(kept, before, why)
            if isinstance(error, ActuationError):
                # Otherwise a restart could still put in force what is answered as failed.
                await self.registry.saved()
            raise

    def _take_back(self, kept: Iterable[Override], before: Iterable[Override], why: str) -> None:
        ours = {each.override.id for each in self.registry.active.values()}
        ended = {override.knob for override in kept if override.id in ours}
        for override in kept:
            self.registry.end(override, why)
        again = [override for override in before if override.knob in ended]
        if again:
            self.registry.put_back(again)

    async def drain(self, intent: Intent, loop: VolumeLoop) -> str:
        """Open the gate so far that all is clean in time. Raises ActuationError, EbbgateError."""
        for_ns = intent.args.for_ns or 0
        async with self._changing:
            self._check_drain(loop)
            override = self._override(OverrideKind.DRAIN, intent, loop.volume.name, for_ns)
            self.registry.enforce(await self.registry.keep((override,)))
        frame = loop.state.frame
        plan = plan_of(frame, for_ns) if frame else None
        text = f"{loop.volume.name}: drains within {format_ns(for_ns)}"
        text += f"; {plan_text(plan, loop.policy.limits)}" if plan else ""
        if loop.volume.kind is Kind.DM_CACHE:
            text += (
                ". dm-cache waits for a second without I/O to the slow device; under a load that"
                f" never stops: ebbgate clean {loop.volume.title}"
            )
        return text

    async def release(self, intent: Intent, loop: VolumeLoop) -> str:
        """Give a knob (without a name: every one) back to the strategies. Raises EbbgateError."""
        name, knob, done = loop.volume.name, intent.args.knob or None, []
        for each in self.registry.of(name):
            override = each.override
            if knob in (None, override.knob):
                self.registry.end(override, f"{intent.who} released it")
                done.append(_released(override))
        taken = loop.resume_control(knob)
        done += [f"{each} is tuned by ebbgate again" for each in taken]
        await self.registry.saved()
        return f"{name}: {', '.join(done) or 'nothing to release'}"

    # ---- what may not be together --------------------------------------------------------------
    def _check_drain(self, loop: VolumeLoop) -> None:
        """Raises ActuationError, with the next step, if a drain could do nothing."""
        title = loop.volume.title
        if loop.mode is not Mode.ENFORCE:
            raise ActuationError(
                f"{title} is in {loop.mode}, which leaves the gate alone",
                f"first: ebbgate enforce {title}",
            )
        why_not = unwritable_reason(loop.last_seen)
        dirty = loop.last_seen.dirty_bytes if loop.last_seen else None
        if not why_not and not dirty:
            why_not = "how much is dirty is unknown" if dirty is None else "it is clean"
        if why_not:
            raise ActuationError(f"{title}: {why_not}", "see ebbgate status")
        if loop.cleaning is not None:
            raise ActuationError(f"{title}: a cleaning is under way already", "see ebbgate status")
        self._check_gate_free(loop)
        if loop.policy.destage is None:
            raise ActuationError(
                f"{title}: policy {loop.policy.name} does not use idle_destage: there is no gate"
                " that a drain could open",
                "use a policy with idle_destage, such as adaptive",
            )
        frame = loop.state.frame
        why_not = (evaluate.unsupported(frame) or idle_destage.unsupported(frame)) if frame else ""
        if why_not:
            raise ActuationError(
                f"{title}: {why_not}; a drain could not open the gate", "see ebbgate explain"
            )

    def _check_gate_free(self, loop: VolumeLoop) -> None:
        """Raises ActuationError if a person or somebody else keeps the gate where it is."""
        title, gate_knobs = loop.volume.title, loop.writer.plan.knobs
        for each in self._of(loop.volume.name, OverrideKind.HOLD):
            raise ActuationError(
                f"{title}: {each.override.who} has put it on hold, so its gate does not change",
                f"first: ebbgate hold {title} --off",
            )
        for each in self._of(loop.volume.name, OverrideKind.SET):
            if each.override.knob in gate_knobs:
                value = format_value(each.override.knob, int(each.override.value))
                raise ActuationError(
                    f"{title}: {each.override.knob} is set to {value} by {each.override.who}, which"
                    " leaves the gate to the kernel: a drain could not open it",
                    f"first: ebbgate release {title} {each.override.knob}",
                )
        for knob in sorted(loop.writer.manual & set(gate_knobs)):
            raise ActuationError(
                f"{title}: {knob} was changed by somebody else, so the gate is left alone and a"
                " drain could not open it",
                f"first: ebbgate release {title} {knob}",
            )

    def _check_no_drain(self, loop: VolumeLoop, knobs: Iterable[str]) -> None:
        """Raises ActuationError for a knob of the gate during a drain, which needs the gate."""
        title = loop.volume.title
        of_gate = next((knob for knob in knobs if knob in loop.writer.plan.knobs), None)
        for each in self._of(loop.volume.name, OverrideKind.DRAIN):
            if of_gate is not None:
                raise ActuationError(
                    f"{title}: a drain of {each.override.who} is under way, which needs {of_gate}",
                    f"wait for its end, or end it: ebbgate release {title}",
                )

    def _of(self, name: str, kind: OverrideKind) -> list[ActiveOverride]:
        return [each for each in self.registry.of(name) if each.override.kind is kind]

    def _override(
        self,
        kind: OverrideKind,
        intent: Intent,
        volume: str,
        for_ns: int | None,
        knob: tuple[str, str] = ("", ""),
    ) -> Override:
        now = self.registry.wall_ns()
        until = None if for_ns is None else now + for_ns
        return Override(kind, volume, intent.who, now, until, *knob)


def _released(override: Override) -> str:
    if override.kind is OverrideKind.SET:
        return f"{override.who}'s {override.knob} setting removed"
    return f"{override.who}'s {override.kind} ended"


def _check_writable(loop: VolumeLoop) -> None:
    why_not = unwritable_reason(loop.last_seen)
    if loop.cleaning is not None:
        why_not = "a cleaning is under way, with another table"
    if why_not:
        raise ActuationError(f"{loop.volume.title}: {why_not}", "see ebbgate status")


def _done(loop: VolumeLoop, knob: str, value: str, for_ns: int | None) -> str:
    """Return the answer once the knob is written."""
    name = loop.volume.name
    if is_trigger(knob):
        return f"{name}: {knob} was written; it leaves no value behind"
    last = "until it is released" if for_ns is None else f"for {format_ns(for_ns)}"
    done = f"{name}: {knob} = {format_value(knob, int(value))} {last}; strategies do not change it"
    if knob in loop.writer.plan.knobs and loop.mode is Mode.ENFORCE:
        done += ", and the gate, of which it is a part, is left to the kernel"
    low, high = knob_limits(loop.policy.limits, knob, loop.volume)
    beyond = beyond_limits(knob, int(value), low, high)
    if beyond:
        done += f"; this is {beyond} limit of policy {loop.policy.name} for strategies"
    return done
