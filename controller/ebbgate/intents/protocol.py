# SPDX-License-Identifier: GPL-2.0-only
"""The messages of the control socket: JSON objects, one per line. Pure.

The server greets; the client sends requests. The server answers each with `refused`, or with
`accepted` and later `done` or `failed`. `error` ends a connection. `controller/README.md` has
examples. Both sides check everything that they read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeGuard

from ebbgate.errors import EbbgateError, UsageError
from ebbgate.text import clean_text
from ebbgate.units import INT64_MAX, KIB, MINUTE_NS, NS_PER_S

VERSION: Final = 1
LINE_BYTES_MAX: Final = 64 * KIB
"""Of one message, including its newline."""
ID_LENGTH_MAX: Final = 64
NAME_LENGTH_MAX: Final = 255
"""Characters of the name of a volume or a kind."""
LABEL_LENGTH_MAX: Final = 64

CONNECTIONS_MAX: Final = 64
"""In all; `ROOT_RESERVE` of them are for root only."""
ROOT_RESERVE: Final = 8
CONNECTIONS_PER_UID: Final = 16
REQUESTS_PER_S: Final = 20
"""Of one user, on average; `REQUESTS_BURST` of them at once."""
REQUESTS_BURST: Final = 40
REQUEST_BYTES: Final = 4 * KIB
"""A longer line counts as one request for each of these: the event loop parses all of it."""
PENDING_PER_UID: Final = 16
"""Accepted requests of one user without an outcome."""
LINE_TIMEOUT_NS: Final = 5 * NS_PER_S
"""From the first byte of a line to its newline."""
IDLE_TIMEOUT_NS: Final = MINUTE_NS
"""Of a connection without a pending request."""
UNSENT_BYTES_MAX: Final = 256 * KIB
"""Answers that the client has not read."""
UNSENT_TIMEOUT_NS: Final = 5 * NS_PER_S

ARGS_MAX: Final = 16
_DIGITS_MAX: Final = 20
_SHOWN: Final = 40
_NO_TEXT: Final = re.compile(r"[\x00\ud800-\udfff]")


class State(StrEnum):
    """The state of a request; `error`: of the connection, which is then closed."""

    REFUSED = "refused"
    ACCEPTED = "accepted"
    DONE = "done"
    FAILED = "failed"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Greeting:
    """The server's first message. `version`: of ebbgate."""

    pid: int
    version: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `id`: chosen by the client; `label`: the person at the client."""

    id: str
    kind: str
    volume: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `request`: the number of an accepted request in the history.

    `id`: empty in an `error`, which is about the connection. `busy`: a limit is reached; the same
    request may be accepted later. `data`: what was asked for, of a `done`.
    """

    state: State
    id: str = ""
    request: int | None = None
    text: str = ""
    hint: str = ""
    busy: bool = False
    data: Mapping[str, str | int] = field(default_factory=dict)


class ProtocolError(EbbgateError):
    """A line is not a valid message. Without an `id` the connection cannot continue.

    `id`: of the request if it is readable; then only this request is refused.
    """

    exit_code = UsageError.exit_code

    def __init__(self, message: str, hint: str = "", *, id: str = "") -> None:
        super().__init__(message, hint)
        self.id = id


# ---- encoding -----------------------------------------------------------------------------------
def encode_greeting(greeting: Greeting) -> bytes:
    """Return one line."""
    return _line({"pid": greeting.pid, "version": greeting.version})


def encode_request(request: Request) -> bytes:
    """Return one line. Raises UsageError if it is too long."""
    document: dict[str, Any] = {"id": request.id, "kind": request.kind}
    if request.volume is not None:
        document["volume"] = request.volume
    document["args"] = dict(request.args)
    if request.label:
        document["label"] = request.label
    line = _line(document)
    if len(line) > LINE_BYTES_MAX:
        raise UsageError(
            f"the request has {len(line)} bytes; at most {LINE_BYTES_MAX} are allowed",
            "put a long policy into the policy folder by hand",
        )
    return line


def encode_answer(answer: Answer) -> bytes:
    """Return one line; a text that does not fit is cut."""
    document: dict[str, Any] = {"id": answer.id} if answer.id else {}
    document["state"] = str(answer.state)
    if answer.request is not None:
        document["request"] = answer.request
    if answer.state is not State.ACCEPTED:
        document["text"] = answer.text
    if answer.hint:
        document["hint"] = answer.hint
    if answer.busy:
        document["busy"] = True
    if answer.data:
        document["data"] = dict(answer.data)
    line = _line(document)
    if len(line) > LINE_BYTES_MAX:
        # Each character may take six bytes.
        document["text"] = answer.text[: LINE_BYTES_MAX // 8] + " ..."
        document.pop("hint", None)
        line = _line(document)
    return line


def _line(document: Mapping[str, Any]) -> bytes:
    text = json.dumps({"v": VERSION, **document}, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


# ---- decoding -----------------------------------------------------------------------------------
def decode_request(line: bytes) -> Request:
    """Read a client's line. Raises ProtocolError."""
    document = _object(line)
    name = document.get("id")
    if not _is_id(name):
        raise ProtocolError(f"id: must be 1 to {ID_LENGTH_MAX} printable ASCII characters")
    try:
        _check_version(document)
        _check_keys(document, ("v", "id", "kind", "volume", "args", "label"))
        return Request(
            id=name,
            kind=_text(document, "kind", NAME_LENGTH_MAX),
            volume=_optional_text(document, "volume", NAME_LENGTH_MAX),
            args=_values(document, "args"),
            label=_optional_text(document, "label", LABEL_LENGTH_MAX, empty=True) or "",
        )
    except ProtocolError as error:
        raise ProtocolError(error.message, error.hint, id=name) from error


def decode_message(line: bytes) -> Greeting | Answer:
    """Read a server's line. Raises ProtocolError."""
    document = _object(line)
    _check_version(document)
    if "state" not in document:
        _check_keys(document, ("v", "pid", "version"))
        return Greeting(_number(document, "pid"), _text(document, "version", NAME_LENGTH_MAX))
    _check_keys(document, ("v", "id", "state", "request", "text", "hint", "busy", "data"))
    state = document["state"]
    if state not in tuple(State):
        raise ProtocolError(f"state: {_shown(state)} is unknown")
    busy = document.get("busy", False)
    if not isinstance(busy, bool):
        raise ProtocolError("busy: must be true or false")
    name = document.get("id", "")
    if name != "" and not _is_id(name):
        raise ProtocolError("id: not a request's id")
    return Answer(
        state=State(state),
        id=name,
        request=_number(document, "request") if "request" in document else None,
        text=_optional_text(document, "text", LINE_BYTES_MAX, empty=True) or "",
        hint=_optional_text(document, "hint", LINE_BYTES_MAX, empty=True) or "",
        busy=busy,
        data=_values(document, "data"),
    )


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > LINE_BYTES_MAX:
        raise ProtocolError(f"a line is longer than {LINE_BYTES_MAX} bytes")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("a line is not UTF-8 text") from error
    try:
        document = json.loads(
            text,
            parse_int=_parse_int,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
            object_pairs_hook=_without_duplicates,
        )
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a line is not a JSON object") from error
    if not isinstance(document, dict):
        raise ProtocolError("a line is not a JSON object")
    return document


def _parse_int(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise ProtocolError(f"a number has more than {_DIGITS_MAX} digits")
    return int(text)


def _refuse_number(text: str) -> int:
    raise ProtocolError(f"{_shown(text)} is not a whole number")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ProtocolError("an object has the same key twice")
    return found


def _check_version(document: Mapping[str, Any]) -> None:
    found = document.get("v")
    if isinstance(found, bool) or found != VERSION:
        what = "is missing" if found is None else f"{_shown(found)} is unknown"
        raise ProtocolError(
            f"v: the protocol version {what}; this ebbgate has version {VERSION}",
            "use command line and daemon of the same release",
        )


def _check_keys(document: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in document:
        if name not in known:
            raise ProtocolError(f"unknown key: {_shown(name)}", f"known: {', '.join(known)}")


def _is_id(value: Any) -> TypeGuard[str]:
    return (
        isinstance(value, str)
        and 0 < len(value) <= ID_LENGTH_MAX
        and value.isascii()
        and value.isprintable()
    )


def _text(document: Mapping[str, Any], key: str, length_max: int, *, empty: bool = False) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise ProtocolError(f"{key}: must be a text")
    if not value and not empty:
        raise ProtocolError(f"{key}: must not be empty")
    if len(value) > length_max:
        raise ProtocolError(f"{key}: longer than {length_max} characters")
    return _whole(key, value)


def _optional_text(
    document: Mapping[str, Any], key: str, length_max: int, *, empty: bool = False
) -> str | None:
    if document.get(key) is None:
        return None
    return _text(document, key, length_max, empty=empty)


def _number(document: Mapping[str, Any], key: str) -> int:
    value = document.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INT64_MAX:
        raise ProtocolError(f"{key}: must be a whole number")
    return value


def _values(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    values = document.get(key, {})
    if not isinstance(values, dict):
        raise ProtocolError(f"{key}: must be an object")
    if len(values) > ARGS_MAX:
        raise ProtocolError(f"{key}: more than {ARGS_MAX} keys")
    for name, value in values.items():
        if not _is_id(name):
            raise ProtocolError(f"{key}: {_shown(name)} is not a name")
        if value is not None and not isinstance(value, str | int):
            raise ProtocolError(f"{key}: {name}: must be a text, a whole number, true or false")
        if isinstance(value, int) and abs(value) > INT64_MAX:
            raise ProtocolError(f"{key}: {name}: the number is too large")
        if isinstance(value, str):
            _whole(f"{key}: {name}", value)
    return values


def _whole(key: str, text: str) -> str:
    """Refuse NUL and half of a surrogate pair: JSON can have them, names and files cannot."""
    if _NO_TEXT.search(text):
        raise ProtocolError(f"{key}: has an invalid character")
    return text


def _shown(value: object) -> str:
    """Quote a client's value for a message: short, without control characters."""
    return repr(clean_text(str(value), _SHOWN))
