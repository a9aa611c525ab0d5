# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of requests and their arguments, and how a request is parsed. Pure.

The command line checks before it sends, for early errors; the daemon checks what arrives. What only
the daemon knows, such as whether an advice applies, it checks by itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from ebbgate.errors import UsageError
from ebbgate.intents.arguments import (
    parse_advice,
    parse_bytes,
    parse_duration,
    parse_flag,
    parse_job_action,
    parse_job_number,
    parse_mode,
    parse_path,
    parse_pin_number,
    parse_policy_name,
    parse_policy_text,
    parse_ranges,
    parse_rate,
    parse_row_id,
    parse_uuid,
    parse_word,
)
from ebbgate.knobs.settable import (
    bounded_value,
    check_knob,
    check_name,
    drain_refusal,
)
from ebbgate.model.hot_set import ChunkRange, check_ranges
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Mode, Volume
from ebbgate.model.warm import JobAction
from ebbgate.text import clean_text

_WORD_MAX: Final = 64


class Scope(StrEnum):
    """`one`: needs a volume; `any`: without one it is for all volumes; `none`: takes no volume."""

    ONE = "one"
    ANY = "any"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """An argument of a request. `parse`: raises UsageError for an invalid value."""

    about: str
    parse: Callable[[object], object]
    required: bool = True


@dataclass(frozen=True, slots=True)
class IntentSpec:
    """A kind of request: what it does, and its arguments."""

    about: str
    scope: Scope
    args: Mapping[str, ArgSpec]


@dataclass(frozen=True, slots=True)
class IntentArgs:
    """The arguments of a valid request; its kind says which of them count.

    `knob`: empty for all. `value`: as the kernel takes it. `for_ns`: None until released.
    """

    mode: Mode = Mode.OBSERVE
    on: bool = True
    for_ns: int | None = None
    within_ns: int = 0
    knob: str = ""
    value: str = ""
    id: str = ""
    action_id: int = 0
    name: str = ""
    text: str = ""
    path: str = ""
    from_bytes: int = 0
    to_bytes: int = 0
    ranges: tuple[ChunkRange, ...] = ()
    chunk_bytes: int = 0
    uuid: str = ""
    bandwidth_bytes_per_s: int | None = None
    job: int = 0
    action: JobAction = JobAction.PAUSE
    pin: int = 0
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """A valid request. `id`: its number in the history; `volume`: as the person named it."""

    id: int
    kind: IntentKind
    volume: str | None
    who: str
    args: IntentArgs


_KNOB: Final = "the kernel's name of a knob"
INTENT_SPECS: Final[Mapping[str, IntentSpec]] = {
    IntentKind.MODE: IntentSpec(
        "Set the mode of a volume.",
        Scope.ONE,
        {"mode": ArgSpec("observe, advise or enforce", parse_mode)},
    ),
    IntentKind.HOLD: IntentSpec(
        "Freeze all knobs at their present values, or end the hold.",
        Scope.ANY,
        {
            "on": ArgSpec("true (default): hold; false: end the hold", parse_flag, required=False),
            "for_ns": ArgSpec(
                "how long, in ns; default: until released", parse_duration, required=False
            ),
        },
    ),
    IntentKind.RESTORE: IntentSpec(
        "Restore all original values; the mode becomes advise.", Scope.ANY, {}
    ),
    IntentKind.CLEAN: IntentSpec(
        "Write all dirty data of a dm-cache or dm-writecache volume back now.",
        Scope.ONE,
        {"within_ns": ArgSpec("give up after this time, in ns", parse_duration)},
    ),
    IntentKind.SET: IntentSpec(
        "Set a knob to a value that no strategy changes.",
        Scope.ONE,
        {
            "knob": ArgSpec(_KNOB, parse_word),
            "value": ArgSpec("with a unit, or in the kernel's unit", parse_word),
            "for_ns": ArgSpec(
                "how long, in ns; default: until released", parse_duration, required=False
            ),
        },
    ),
    IntentKind.DRAIN: IntentSpec(
        "Write all dirty data back within a time.",
        Scope.ONE,
        {"for_ns": ArgSpec("the time, in ns", parse_duration)},
    ),
    IntentKind.RELEASE: IntentSpec(
        "Return a knob to ebbgate; without one: all knobs; ends hold and drain.",
        Scope.ONE,
        {"knob": ArgSpec(_KNOB, parse_word, required=False)},
    ),
    IntentKind.APPLY: IntentSpec(
        "Apply an advice: set all its knobs, or none, until they are released.",
        Scope.ONE,
        {"id": ArgSpec("number of the advice, such as EBB-206; it must apply now", parse_advice)},
    ),
    IntentKind.UNDO: IntentSpec(
        "Undo a knob write: set the value before it, until it is released.",
        Scope.ANY,
        {"action_id": ArgSpec("number of the knob write in the history", parse_row_id)},
    ),
    IntentKind.POLICY_SAVE: IntentSpec(
        "Save a policy and use it at once; the former text is kept in NAME.yaml~.",
        Scope.NONE,
        {
            "name": ArgSpec("name of the file, without .yaml", parse_policy_name),
            "text": ArgSpec("the policy; the whole request at most 64 KiB", parse_policy_text),
        },
    ),
    IntentKind.POLICY_REMOVE: IntentSpec(
        "Remove a policy; its text is kept in NAME.yaml~.",
        Scope.NONE,
        {"name": ArgSpec("name of the file, without .yaml", parse_policy_name)},
    ),
    IntentKind.WARM: IntentSpec(
        "Read a file, or a range of a volume, so that the kernel caches it: a job.",
        Scope.ANY,
        {
            "path": ArgSpec("the file; then without a volume", parse_path, required=False),
            "from_bytes": ArgSpec(
                "where the range begins (default 0)", parse_bytes, required=False
            ),
            "to_bytes": ArgSpec("where the range ends", parse_bytes, required=False),
            "ranges": ArgSpec(
                "hot ranges instead of a path or a range", parse_ranges, required=False
            ),
            "chunk_bytes": ArgSpec("the unit of the ranges", parse_bytes, required=False),
            "uuid": ArgSpec(
                "of the volume with the ranges, if unnamed", parse_uuid, required=False
            ),
            "bandwidth_bytes_per_s": ArgSpec("the highest rate", parse_rate, required=False),
        },
    ),
    IntentKind.JOB: IntentSpec(
        "Pause, resume or cancel a job.",
        Scope.NONE,
        {
            "job": ArgSpec("number of the job", parse_job_number),
            "action": ArgSpec("pause, resume or cancel", parse_job_action),
        },
    ),
    IntentKind.HOT: IntentSpec(
        "Tell which parts of a volume were used last; the control socket alone has the answer.",
        Scope.ONE,
        {},
    ),
    IntentKind.PIN: IntentSpec(
        "Keep a file in the cache until it is unpinned or gone.",
        Scope.NONE,
        {"path": ArgSpec("the file", parse_path)},
    ),
    IntentKind.UNPIN: IntentSpec(
        "End a pin, given by its number or its path.",
        Scope.NONE,
        {
            "pin": ArgSpec("number of the pin", parse_pin_number, required=False),
            "path": ArgSpec("the pinned file", parse_path, required=False),
        },
    ),
    IntentKind.FORGET: IntentSpec(
        "Drop what is kept for a volume that is not here.",
        Scope.NONE,
        {"absent": ArgSpec("its uuid, or the name that it had last", parse_uuid)},
    ),
}
"""By kind of request."""


def check_intent(kind: str, volume: Volume | str | None, args: Mapping[str, Any]) -> IntentArgs:
    """Return the arguments. Raises UsageError, with the next step, for an invalid request.

    `volume`: itself, or only its name; then what depends on its kind is not checked.
    """
    spec = INTENT_SPECS.get(kind)
    if spec is None:
        raise UsageError(
            f"unknown request: {clean_text(kind, _WORD_MAX)}", f"known: {', '.join(INTENT_SPECS)}"
        )
    _check_scope(kind, spec, volume)
    for name in args:
        if name not in spec.args:
            close = difflib.get_close_matches(name, spec.args, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known arguments: {_known(spec)}"
            raise UsageError(f"{kind}: unknown argument {clean_text(name, _WORD_MAX)}", hint)
    found: dict[str, Any] = {}
    for name, arg in spec.args.items():
        if name in args and (args[name] is not None or arg.required):
            found[name] = _parsed(kind, name, arg, args[name])
        elif arg.required:
            raise UsageError(
                f"{kind} needs {name}: {arg.about}", f"known arguments: {_known(spec)}"
            )
    return _with_volume(kind, volume, IntentArgs(**found))


def _check_scope(kind: str, spec: IntentSpec, volume: Volume | str | None) -> None:
    if spec.scope is Scope.ONE and volume is None:
        raise UsageError(f"{kind} needs a volume", "name one")
    if spec.scope is Scope.NONE and volume is not None:
        raise UsageError(f"{kind} takes no volume", "omit the volume")


def _parsed(kind: str, name: str, arg: ArgSpec, value: object) -> object:
    try:
        return arg.parse(value)
    except UsageError as error:
        hint = error.hint or f"expected: {arg.about}"
        raise UsageError(f"{kind}: {name}: {error.message}", hint) from error


def _with_volume(kind: str, volume: Volume | str | None, args: IntentArgs) -> IntentArgs:
    """Check the knob and parse its value. Raises UsageError for what the volume cannot have."""
    if isinstance(volume, Volume):
        if args.knob:
            check_knob(volume, args.knob)
        why_not = drain_refusal(volume) if kind == IntentKind.DRAIN else ""
        if why_not:
            raise UsageError(f"{volume.title}: {why_not}", f"run: ebbgate clean {volume.title}")
    elif args.knob:
        check_name(args.knob)
    if kind == IntentKind.WARM:
        _check_warm(volume, args)
    if kind == IntentKind.UNPIN and bool(args.pin) == bool(args.path):
        raise UsageError("unpin needs either a pin or a path", "list the pins: ebbgate pins")
    if kind == IntentKind.SET:
        return replace(args, value=bounded_value(args.knob, args.value))
    return args


def _check_warm(volume: Volume | str | None, args: IntentArgs) -> None:
    """Raises UsageError unless a file, a range of a volume or hot ranges are named."""
    if args.ranges or args.chunk_bytes or args.uuid:
        _check_hot(volume, args)
        return
    ranged = args.to_bytes or args.from_bytes
    if volume is None and (not args.path or ranged):
        raise UsageError("warm needs a path, or a volume with a range", "see ebbgate warm --help")
    if volume is not None and (args.path or args.to_bytes <= args.from_bytes):
        raise UsageError(
            "warm: a volume takes a range that ends after its start, and no path",
            "see ebbgate warm --help",
        )


def _check_hot(volume: Volume | str | None, args: IntentArgs) -> None:
    if args.path or args.to_bytes or args.from_bytes or (volume is None) == (not args.uuid):
        raise UsageError(
            "warm: ranges need a volume or its uuid, and no path", "see ebbgate warm --help"
        )
    try:
        check_ranges(args.ranges, args.chunk_bytes)
    except ValueError as error:
        raise UsageError(f"warm: ranges: {error}", "see ebbgate warm --help") from error


def _known(spec: IntentSpec) -> str:
    return ", ".join(spec.args) or "none"
