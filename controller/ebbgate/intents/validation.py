# SPDX-License-Identifier: GPL-2.0-only
"""What people may ask for, kind by kind: one table for command line, web and daemon. Pure.

Each looks before it adds or obeys an intent row, so that all three refuse the same in the same
words. What only the daemon knows (is the volume suspended, does the advice hold?) it says itself.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ebbgate.errors import UsageError
from ebbgate.knobs.settable import (
    bounded_value,
    check_knob,
    check_name,
    checked_value,
    drain_refusal,
)
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Mode, Volume
from ebbgate.policy.language.yaml_events import BYTES_MAX
from ebbgate.units import NS_PER_S, clean_text, format_bytes, format_ns

LONGEST_NS: Final = 30 * 24 * 3600 * NS_PER_S
"""A wish for longer than a month is one without an end, and should say so."""
POLICY_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""The name of a policy's file without its `.yaml`."""
ADVICE_ID: Final = re.compile(r"EBB-[0-9]{3}")
_WORD_MAX: Final = 64
_HALF_PAIR: Final = re.compile(r"[\ud800-\udfff]")
_ROW_ID_MAX: Final = (1 << 63) - 1


class Scope(StrEnum):
    """`one`: a volume must be named; `any`: without a name all are meant; `none`: of no volume."""

    ONE = "one"
    ANY = "any"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Word:
    """One of a row's `args`. `check`: raises UsageError for what cannot be meant."""

    about: str
    check: Callable[[Any], None]
    required: bool = True


@dataclass(frozen=True, slots=True)
class IntentSpec:
    """What a kind of intent is given, and what it does, in a sentence."""

    about: str
    scope: Scope
    words: Mapping[str, Word]


def _text(value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise UsageError("it is not a text")


def _word(value: Any) -> None:
    """A short text for one line of a terminal."""
    _text(value)
    if len(value) > _WORD_MAX:
        raise UsageError(f"it is longer than {_WORD_MAX} characters")
    if clean_text(value) != value:
        raise UsageError("it has a character that cannot be shown", "write it in plain letters")


def _flag(value: Any) -> None:
    if not isinstance(value, bool):
        raise UsageError("it is neither true nor false")


def _mode(value: Any) -> None:
    if value not in tuple(Mode):
        raise UsageError(f"{_shown(value)} is no mode", f"one of {', '.join(Mode)}")


def _duration(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise UsageError("it is no time in whole nanoseconds", "for example 600000000000: 10 min")
    if value > LONGEST_NS:
        raise UsageError(f"{format_ns(value)} is longer than 30 days", "leave the time out")


def _advice(value: Any) -> None:
    if not isinstance(value, str) or not ADVICE_ID.fullmatch(value):
        raise UsageError(f"{_shown(value)} is no advice", "write it as EBB-206")


def _row_id(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _ROW_ID_MAX:
        raise UsageError(
            f"{_shown(value)} is no number of a knob write", "see the decisions of a volume"
        )


def _policy_name(value: Any) -> None:
    if not isinstance(value, str) or not POLICY_NAME.fullmatch(value):
        raise UsageError(
            "a policy's file is called by a-z, 0-9 and -, at most 64 of them", "for example night"
        )


def _policy_text(value: Any) -> None:
    _text(value)
    # Half of a pair, which JSON can hold and no file can.
    if _HALF_PAIR.search(value):
        raise UsageError("it is no Unicode text", "save it in UTF-8")
    length = len(value.encode())
    if length > BYTES_MAX:
        why = f"{format_bytes(length)} are more than the {format_bytes(BYTES_MAX)} of a policy"
        raise UsageError(why, "make two policies of it")


def _shown(value: Any) -> str:
    return repr(clean_text(str(value), _WORD_MAX))


_KNOB: Final = "a knob by the kernel's name"
REQUESTS: Final[Mapping[str, IntentSpec]] = {
    IntentKind.MODE: IntentSpec(
        "How far ebbgate may go with the volume, from now on.",
        Scope.ONE,
        {"mode": Word("observe, advise or enforce", _mode)},
    ),
    IntentKind.HOLD: IntentSpec(
        "Freeze every knob where it is, or go on.",
        Scope.ANY,
        {
            "on": Word("false: go on; true where it is left out", _flag, required=False),
            "for_ns": Word("for so long, ns; without it until released", _duration, required=False),
        },
    ),
    IntentKind.RESTORE: IntentSpec(
        "Put every original back; the mode is advise then.", Scope.ANY, {}
    ),
    IntentKind.CLEAN: IntentSpec(
        "Have dm-cache's cleaner write all dirty data back.",
        Scope.ONE,
        {"within_ns": Word("given up after so long, ns", _duration)},
    ),
    IntentKind.SET: IntentSpec(
        "A knob keeps a value, which no strategy changes meanwhile.",
        Scope.ONE,
        {
            "knob": Word(_KNOB, _word),
            "value": Word("with a unit, or as the kernel takes it", _word),
            "for_ns": Word("for so long, ns; without it until released", _duration, required=False),
        },
    ),
    IntentKind.DRAIN: IntentSpec(
        "Open the gate so far that all is clean in time.",
        Scope.ONE,
        {"for_ns": Word("clean within so long, ns", _duration)},
    ),
    IntentKind.RELEASE: IntentSpec(
        "Give a knob back to the strategies; without one: every knob, and end holds and drains.",
        Scope.ONE,
        {"knob": Word(_KNOB, _word, required=False)},
    ),
    IntentKind.APPLY: IntentSpec(
        "Set the knobs that an advice names, all or none of them, until they are released.",
        Scope.ONE,
        {"id": Word("the advice, such as EBB-206; it must hold now", _advice)},
    ),
    IntentKind.UNDO: IntentSpec(
        "Put back what a knob was before one recorded write of it, until it is released.",
        Scope.ANY,
        {"action_id": Word("the number of the knob write in the history", _row_id)},
    ),
    IntentKind.POLICY_SAVE: IntentSpec(
        "Keep a policy and follow it at once; what it replaces stays in NAME.yaml~.",
        Scope.NONE,
        {
            "name": Word("of the file, without .yaml", _policy_name),
            "text": Word("of the policy; the whole request at most 64 KiB", _policy_text),
        },
    ),
    IntentKind.POLICY_REMOVE: IntentSpec(
        "Take a policy away; what it said stays in NAME.yaml~.",
        Scope.NONE,
        {"name": Word("of the file, without .yaml", _policy_name)},
    ),
}
"""By kind."""


def check(kind: str, volume: Volume | str | None, args: Mapping[str, Any]) -> None:
    """Raises UsageError, with the next step, for a request that cannot be meant.

    `volume`: as it was found, or only its name; then what depends on its kind is not looked at.
    """
    request = REQUESTS.get(kind)
    if request is None:
        raise UsageError(
            f"unknown intent: {clean_text(kind, _WORD_MAX)}", f"known: {', '.join(REQUESTS)}"
        )
    _check_scope(kind, request, volume)
    for name in args:
        if name not in request.words:
            close = difflib.get_close_matches(name, request.words, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it takes: {_known(request)}"
            raise UsageError(f"{kind} takes no {clean_text(name, _WORD_MAX)}", hint)
    for name, word in request.words.items():
        if name in args and (args[name] is not None or word.required):
            _check_word(kind, name, word, args[name])
        elif word.required:
            raise UsageError(f"{kind} needs {name}: {word.about}", f"it takes: {_known(request)}")
    _check_volume(kind, volume, args)


def _check_scope(kind: str, request: IntentSpec, volume: Volume | str | None) -> None:
    if request.scope is Scope.ONE and volume is None:
        raise UsageError(f"{kind} is for one volume", "name it")
    if request.scope is Scope.NONE and volume is not None:
        raise UsageError(f"{kind} is for no volume", "leave the volume out")


def _check_word(kind: str, name: str, word: Word, value: Any) -> None:
    try:
        word.check(value)
    except UsageError as error:
        hint = error.hint or f"it is {word.about}"
        raise UsageError(f"{kind}: {name}: {error.message}", hint) from error


def _check_volume(kind: str, volume: Volume | str | None, args: Mapping[str, Any]) -> None:
    knob = args.get("knob")
    if isinstance(volume, Volume):
        if kind == IntentKind.SET:
            checked_value(volume, args["knob"], args["value"])
        elif knob is not None:
            check_knob(volume, knob)
        why_not = drain_refusal(volume) if kind == IntentKind.DRAIN else ""
        if why_not:
            raise UsageError(f"{volume.title}: {why_not}", f"run: ebbgate clean {volume.title}")
    elif knob is not None:
        check_name(knob)
        if kind == IntentKind.SET:
            bounded_value(knob, args["value"])


def _known(request: IntentSpec) -> str:
    return ", ".join(request.words) or "nothing"
