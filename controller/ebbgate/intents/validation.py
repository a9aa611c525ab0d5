# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of requests and their arguments, and how a request is parsed. Pure.

The command line checks before it sends, for early errors; the daemon checks what arrives. What only
the daemon knows, such as whether an advice applies, it checks by itself.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from ebbgate.errors import UsageError
from ebbgate.knobs.settable import (
    bounded_value,
    check_knob,
    check_name,
    drain_refusal,
)
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Mode, Volume
from ebbgate.model.warm import JobAction
from ebbgate.policy.language.yaml_events import BYTES_MAX
from ebbgate.text import clean_text
from ebbgate.units import DAY_NS, INT64_MAX, KIB, format_bytes, format_ns

OVERRIDE_NS_MAX: Final = 30 * DAY_NS
"""A longer override should be made without an end."""
POLICY_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""The name of a policy file without `.yaml`."""
ADVICE_ID: Final = re.compile(r"EBB-[0-9]{3}")
_WORD_MAX: Final = 64
_PATH_BYTES_MAX: Final = 4095
"""As in the kernel (PATH_MAX, without the end of the text)."""
_RATE_MIN: Final = 64 * KIB
_HALF_PAIR: Final = re.compile(r"[\ud800-\udfff]")


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
    bandwidth_bytes_per_s: int | None = None
    job: int = 0
    action: JobAction = JobAction.PAUSE


@dataclass(frozen=True, slots=True)
class Intent:
    """A valid request. `id`: its number in the history; `volume`: as the person named it."""

    id: int
    kind: IntentKind
    volume: str | None
    who: str
    args: IntentArgs


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError("must be a text that is not empty")
    return value


def _word(value: object) -> str:
    """Return a short text for one line of a terminal."""
    text = _text(value)
    if len(text) > _WORD_MAX:
        raise UsageError(f"must not be longer than {_WORD_MAX} characters")
    if clean_text(text) != text:
        raise UsageError("has a character that cannot be displayed", "use plain characters")
    return text


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError("must be true or false")
    return value


def _mode(value: object) -> Mode:
    if not isinstance(value, str) or value not in tuple(Mode):
        raise UsageError(f"unknown mode {_shown(value)}", f"known modes: {', '.join(Mode)}")
    return Mode(value)


def _duration(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise UsageError("must be a time in whole nanoseconds", "for example 600000000000: 10 min")
    if value > OVERRIDE_NS_MAX:
        raise UsageError(f"{format_ns(value)} is longer than 30 days", "omit the time")
    return value


def _advice(value: object) -> str:
    if not isinstance(value, str) or not ADVICE_ID.fullmatch(value):
        raise UsageError(f"{_shown(value)} is not the number of an advice", "for example EBB-206")
    return value


def _row_id(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT64_MAX:
        raise UsageError(
            f"{_shown(value)} is not the number of a knob write", "see the decisions of a volume"
        )
    return value


def _path(value: object) -> str:
    text = _text(value)
    if not text.startswith("/") or len(text.encode(errors="replace")) > _PATH_BYTES_MAX:
        raise UsageError(f"must begin with / and have at most {_PATH_BYTES_MAX} bytes")
    if clean_text(text, _PATH_BYTES_MAX) != text:
        raise UsageError("has a character that cannot be displayed", "rename the file")
    return text


def _bytes(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INT64_MAX:
        raise UsageError("must be a number of bytes", "for example 1073741824")
    return value


def _rate(value: object) -> int:
    if _bytes(value) < _RATE_MIN:
        raise UsageError(f"must be at least {format_bytes(_RATE_MIN)} per second")
    return _bytes(value)


def _job_number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= INT64_MAX:
        raise UsageError(f"{_shown(value)} is not the number of a job", "list them: ebbgate jobs")
    return value


def _job_action(value: object) -> JobAction:
    if not isinstance(value, str) or value not in tuple(JobAction):
        raise UsageError(f"unknown action {_shown(value)}", f"known: {', '.join(JobAction)}")
    return JobAction(value)


def _policy_name(value: object) -> str:
    if not isinstance(value, str) or not POLICY_NAME.fullmatch(value):
        raise UsageError("must have only a-z, 0-9 and -, at most 64 of them", "for example night")
    return value


def _policy_text(value: object) -> str:
    text = _text(value)
    # Half of a surrogate pair: JSON can have it, a file cannot.
    if _HALF_PAIR.search(text):
        raise UsageError("must be Unicode text", "save it in UTF-8")
    length = len(text.encode())
    if length > BYTES_MAX:
        why = f"must not be longer than {format_bytes(BYTES_MAX)}, but has {format_bytes(length)}"
        raise UsageError(why, "split it into two policies")
    return text


def _shown(value: object) -> str:
    return repr(clean_text(str(value), _WORD_MAX))


_KNOB: Final = "the kernel's name of a knob"
INTENT_SPECS: Final[Mapping[str, IntentSpec]] = {
    IntentKind.MODE: IntentSpec(
        "Set the mode of a volume.",
        Scope.ONE,
        {"mode": ArgSpec("observe, advise or enforce", _mode)},
    ),
    IntentKind.HOLD: IntentSpec(
        "Freeze all knobs at their present values, or end the hold.",
        Scope.ANY,
        {
            "on": ArgSpec("true (default): hold; false: end the hold", _flag, required=False),
            "for_ns": ArgSpec(
                "how long, in ns; default: until released", _duration, required=False
            ),
        },
    ),
    IntentKind.RESTORE: IntentSpec(
        "Restore all original values; the mode becomes advise.", Scope.ANY, {}
    ),
    IntentKind.CLEAN: IntentSpec(
        "Write all dirty data of a dm-cache or dm-writecache volume back now.",
        Scope.ONE,
        {"within_ns": ArgSpec("give up after this time, in ns", _duration)},
    ),
    IntentKind.SET: IntentSpec(
        "Set a knob to a value that no strategy changes.",
        Scope.ONE,
        {
            "knob": ArgSpec(_KNOB, _word),
            "value": ArgSpec("with a unit, or in the kernel's unit", _word),
            "for_ns": ArgSpec(
                "how long, in ns; default: until released", _duration, required=False
            ),
        },
    ),
    IntentKind.DRAIN: IntentSpec(
        "Write all dirty data back within a time.",
        Scope.ONE,
        {"for_ns": ArgSpec("the time, in ns", _duration)},
    ),
    IntentKind.RELEASE: IntentSpec(
        "Return a knob to ebbgate; without one: all knobs; ends hold and drain.",
        Scope.ONE,
        {"knob": ArgSpec(_KNOB, _word, required=False)},
    ),
    IntentKind.APPLY: IntentSpec(
        "Apply an advice: set all its knobs, or none, until they are released.",
        Scope.ONE,
        {"id": ArgSpec("number of the advice, such as EBB-206; it must apply now", _advice)},
    ),
    IntentKind.UNDO: IntentSpec(
        "Undo a knob write: set the value before it, until it is released.",
        Scope.ANY,
        {"action_id": ArgSpec("number of the knob write in the history", _row_id)},
    ),
    IntentKind.POLICY_SAVE: IntentSpec(
        "Save a policy and use it at once; the former text is kept in NAME.yaml~.",
        Scope.NONE,
        {
            "name": ArgSpec("name of the file, without .yaml", _policy_name),
            "text": ArgSpec("the policy; the whole request at most 64 KiB", _policy_text),
        },
    ),
    IntentKind.POLICY_REMOVE: IntentSpec(
        "Remove a policy; its text is kept in NAME.yaml~.",
        Scope.NONE,
        {"name": ArgSpec("name of the file, without .yaml", _policy_name)},
    ),
    IntentKind.WARM: IntentSpec(
        "Read a file, or a range of a volume, so that the kernel caches it: a job.",
        Scope.ANY,
        {
            "path": ArgSpec("the file; then without a volume", _path, required=False),
            "from_bytes": ArgSpec("where the range begins (default 0)", _bytes, required=False),
            "to_bytes": ArgSpec("where the range ends", _bytes, required=False),
            "bandwidth_bytes_per_s": ArgSpec("the highest rate", _rate, required=False),
        },
    ),
    IntentKind.JOB: IntentSpec(
        "Pause, resume or cancel a job.",
        Scope.NONE,
        {
            "job": ArgSpec("number of the job", _job_number),
            "action": ArgSpec("pause, resume or cancel", _job_action),
        },
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
    if kind == IntentKind.SET:
        return replace(args, value=bounded_value(args.knob, args.value))
    return args


def _check_warm(volume: Volume | str | None, args: IntentArgs) -> None:
    """Raises UsageError unless either a file or a range of a volume is named."""
    ranged = args.to_bytes or args.from_bytes
    if volume is None and (not args.path or ranged):
        raise UsageError("warm needs a path, or a volume with a range", "see ebbgate warm --help")
    if volume is not None and (args.path or args.to_bytes <= args.from_bytes):
        raise UsageError(
            "warm: a volume takes a range that ends after its start, and no path",
            "see ebbgate warm --help",
        )


def _known(spec: IntentSpec) -> str:
    return ", ".join(spec.args) or "none"
