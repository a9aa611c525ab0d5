# SPDX-License-Identifier: GPL-2.0-only
"""Valid messages pass, invalid ones are reported."""

from __future__ import annotations

import json

import pytest

from ebbgate.errors import UsageError
from ebbgate.intents.protocol import (
    LINE_BYTES_MAX,
    Answer,
    Greeting,
    ProtocolError,
    Request,
    State,
    decode_message,
    decode_request,
    encode_answer,
    encode_greeting,
    encode_request,
)
from ebbgate.text import clean_text

REQUESTS = (
    Request("a1", "restore"),
    Request("~" * 64, "set", "vg/data", {"knob": "k", "value": "1MiB", "for_ns": 7}, "änna"),
    Request("a", "hold", None, {"on": False}),
)
ANSWERS = (
    Answer(State.REFUSED, "a", text="no", hint="try"),
    Answer(State.ACCEPTED, "a", 17),
    Answer(State.DONE, "a", 17, "bcache0: mode advise"),
    Answer(State.ERROR, text="too many connections"),
)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_arrives_as_it_was_sent(request_: Request) -> None:
    line = encode_request(request_)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode_request(line) == request_


@pytest.mark.parametrize("message", [Greeting(123, "0.1.0"), *ANSWERS])
def test_server_messages_arrive_as_sent(message: Greeting | Answer) -> None:
    line = encode_greeting(message) if isinstance(message, Greeting) else encode_answer(message)
    assert decode_message(line) == message


def bad(text: str = "", **changed: object) -> bytes:
    if text:
        return text.encode()
    good = {"v": 1, "id": "a1", "kind": "set", "volume": "bcache0", "args": {}}
    return json.dumps({**good, **changed}).encode()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (bad("no JSON"), "not a JSON object"),
        (bad("[1]"), "not a JSON object"),
        (bad("[" * 60_000), "not a JSON object"),
        (bad('{"v":1,"id":"a","args":' + '{"a":' * 9_000 + "1" + "}" * 9_001), "not a JSON object"),
        (bad('{"v":1,"id":"a","kind":"x","args":{"n":' + "9" * 4000 + "}}"), "more than 20 digits"),
        (bad('{"v":1,"id":"a","kind":"x","args":{"n":1e3}}'), "not a whole number"),
        (bad('{"v":1,"id":"a","kind":"x","args":{"n":NaN}}'), "not a whole number"),
        (bad('{"v":1,"v":1}'), "same key twice"),
        (b"\xff\xfe", "not UTF-8"),
        (b" " * (LINE_BYTES_MAX + 1), "longer than 65536"),
        (bad(id=""), "id: must be"),
        (bad(id=7), "id: must be"),
        (bad(id="a" * 65), "id: must be"),
        (bad(id="a\nb"), "id: must be"),
        (bad(v=2), "v: the protocol version '2' is unknown; this ebbgate has version 1"),
        (bad(v=True), "v: the protocol version"),
        (bad('{"id":"a"}'), "v: the protocol version is missing"),
        (bad(shell="x"), "unknown key: 'shell'"),
        (bad('{"v":1,"id":"a","\\u001b[31m":1}'), r"unknown key: '\?\[31m'"),
        (bad(kind=None), "kind: must be a text"),
        (bad(kind=""), "kind: must not be empty"),
        (bad(kind="x" * 256), "kind: longer than 255"),
        (bad(volume=7), "volume: must be a text"),
        (bad(volume="a\0b"), "volume: has an invalid character"),
        (bad(volume="\ud800"), "volume: has an invalid character"),
        (bad(label="x" * 65), "label: longer than 64"),
        (bad(args=[]), "args: must be an object"),
        (bad(args={"a": [1]}), "args: a: must be a text"),
        (bad(args={"a": 1 << 63}), "args: a: the number is too large"),
        (bad(args={str(n): n for n in range(17)}), "args: more than 16 keys"),
        (bad(args={"a\x1b": 1}), r"args: 'a\?' is not a name"),
    ],
)
def test_an_invalid_request_line_is_reported(line: bytes, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        decode_request(line)


def test_a_wrong_request_names_its_id_and_a_broken_line_none() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_request(bad(volume=7))
    assert caught.value.id == "a1"
    with pytest.raises(ProtocolError) as caught:
        decode_request(b"{")
    assert caught.value.id == ""


@pytest.mark.parametrize(
    "line",
    [
        b'{"v":1}',
        b'{"v":1,"pid":-1,"version":"0.1.0"}',
        b'{"v":1,"state":"maybe"}',
        b'{"v":1,"state":"done","id":7}',
        b'{"v":1,"state":"done","id":"a","text":7}',
        b'{"v":2,"pid":1,"version":"0.1.0"}',
    ],
)
def test_a_client_checks_server_messages(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_message(line)


def test_a_request_longer_than_a_line_is_refused_before_it_is_sent() -> None:
    with pytest.raises(UsageError, match="at most 65536 are allowed"):
        encode_request(Request("a", "policy_save", None, {"name": "n", "text": "x" * 65_500}))


def test_an_answer_longer_than_a_line_is_cut() -> None:
    line = encode_answer(Answer(State.FAILED, "a", 1, "\x01" * 70_000, "hint"))
    assert len(line) <= LINE_BYTES_MAX
    answer = decode_message(line)
    assert isinstance(answer, Answer) and answer.text.endswith("...")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("bcache0: änna ✓", "bcache0: änna ✓"),
        ("\x1b[31m\x07", "?[31m?"),
        ("a\x7f\x85\x9b", "a???"),
        ("a\u202eb\u200bc\u2066\ufeff", "a?b?c??"),
        ("one\ntwo\tthree", "one two three"),
        ("a\u2028b\ud800", "a?b?"),
    ],
)
def test_no_control_character_reaches_a_terminal(text: str, clean: str) -> None:
    assert clean_text(text) == clean


def test_a_long_text_of_somebody_else_is_cut() -> None:
    assert clean_text("x" * 100, 10) == "xxxxxxx..."
