# SPDX-License-Identifier: GPL-2.0-only
"""Requests and their arguments are checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbgate.errors import UsageError
from ebbgate.intents.arguments import OVERRIDE_NS_MAX
from ebbgate.intents.validation import (
    INTENT_SPECS,
    IntentArgs,
    Scope,
    check_intent,
)
from ebbgate.model.override import IntentKind
from ebbgate.model.volume import Kind, Mode
from ebbgate.policy.language.yaml_events import BYTES_MAX
from ebbgate.units import NS_PER_S
from tests.builders import volume

GOOD: dict[str, dict[str, Any]] = {
    "mode": {"mode": "enforce"},
    "hold": {"on": True, "for_ns": NS_PER_S},
    "restore": {},
    "clean": {"within_ns": NS_PER_S},
    "set": {"knob": "writeback_percent", "value": "20%", "for_ns": None},
    "drain": {"for_ns": OVERRIDE_NS_MAX},
    "release": {"knob": "sequential_cutoff"},
    "apply": {"id": "EBB-206"},
    "undo": {"action_id": 1},
    "policy_save": {"name": "night-2", "text": "version: 1\n"},
    "policy_remove": {"name": "night-2"},
    "warm": {"path": "/srv/db", "bandwidth_bytes_per_s": 1 << 20},
    "job": {"job": 3, "action": "pause"},
    "hot": {},
    "pin": {"path": "/srv/db"},
    "unpin": {"pin": 3},
    "forget": {"absent": "bcache0"},
}


def volume_for(kind: str) -> str | None:
    return "bcache0" if INTENT_SPECS[kind].scope is Scope.ONE else None


def refused(kind: str, args: dict[str, Any]) -> str:
    with pytest.raises(UsageError) as caught:
        check_intent(kind, volume_for(kind), args)
    return str(caught.value)


def test_every_kind_and_argument_is_documented() -> None:
    assert set(INTENT_SPECS) == set(IntentKind) == set(GOOD)
    for request in INTENT_SPECS.values():
        assert request.about
        assert all(word.about for word in request.args.values())


@pytest.mark.parametrize("kind", GOOD)
def test_a_valid_request_passes(kind: str) -> None:
    check_intent(kind, volume_for(kind), GOOD[kind])


@pytest.mark.parametrize(
    ("kind", "word"),
    [(k, w) for k, r in INTENT_SPECS.items() for w in r.args if r.args[w].required],
)
def test_a_missing_argument_is_named(kind: str, word: str) -> None:
    args = {name: value for name, value in GOOD[kind].items() if name != word}
    assert f"{kind} needs {word}" in refused(kind, args)


@pytest.mark.parametrize("kind", GOOD)
def test_an_unknown_argument_is_named(kind: str) -> None:
    assert f"{kind}: unknown argument colour" in refused(kind, {**GOOD[kind], "colour": 1})


def test_a_misspelt_word_gets_the_nearest_suggestion() -> None:
    assert "did you mean knob?" in refused("set", {"knop": "writeback_percent", "value": "20"})


@given(
    kind=st.sampled_from(sorted(GOOD)),
    args=st.dictionaries(
        st.sampled_from(sorted({word for args in GOOD.values() for word in args})),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()),
    ),
)
def test_nonsense_is_refused_or_passes_and_never_breaks(kind: str, args: dict[str, Any]) -> None:
    for where in (None, "bcache0", volume()):
        try:
            check_intent(kind, where, args)
        except UsageError as error:
            assert error.message


@pytest.mark.parametrize(
    ("kind", "args", "message"),
    [
        ("mode", {"mode": "turbo"}, "unknown mode 'turbo'"),
        ("hold", {"on": "yes"}, "must be true or false"),
        ("clean", {"within_ns": 0}, "must be a time in whole nanoseconds"),
        ("drain", {"for_ns": OVERRIDE_NS_MAX + 1}, "longer than 30 days"),
        ("drain", {"for_ns": True}, "must be a time"),
        ("set", {"knob": "writeback_precent", "value": "1"}, "did you mean writeback_percent?"),
        ("set", {"knob": "io_disable", "value": "1"}, "ebbgate never writes io_disable"),
        ("set", {"knob": "writeback_percent", "value": "41"}, "out of bounds"),
        ("set", {"knob": "writeback_percent", "value": 20}, "must be a text"),
        ("release", {"knob": "nosuch"}, "there is no knob nosuch"),
        ("apply", {"id": "206"}, "for example EBB-206"),
        ("warm", {"path": "srv/db"}, "must begin with /"),
        ("warm", {"path": "/srv/\x1b[2J"}, "cannot be displayed"),
        ("warm", {"path": "/" + "a" * 4096}, "at most 4095 bytes"),
        ("warm", {"path": "/srv", "to_bytes": 1}, "a path, or a volume with a range"),
        ("warm", {"path": "/srv", "bandwidth_bytes_per_s": 1}, "at least 64 KiB"),
        ("warm", {"path": "/srv", "bandwidth_bytes_per_s": True}, "must be a number of bytes"),
        ("warm", {"ranges": "0", "chunk_bytes": 1 << 20}, "need a volume or its uuid"),
        ("warm", {"ranges": "0", "uuid": "u"}, "not a power of two"),
        ("warm", {"ranges": "0", "uuid": "u", "chunk_bytes": 3 << 20}, "not a power of two"),
        ("warm", {"ranges": "0,-1", "uuid": "u", "chunk_bytes": 1 << 20}, "two ranges overlap"),
        ("warm", {"ranges": "-1", "uuid": "u", "chunk_bytes": 1 << 20}, "outside of any volume"),
        ("warm", {"ranges": "0;1", "uuid": "u", "chunk_bytes": 1 << 20}, "it is no list of ranges"),
        ("warm", {"ranges": "0+ffff", "uuid": "u", "chunk_bytes": 1 << 20}, "more than 16384"),
        ("warm", {"ranges": "0", "path": "/a", "uuid": "u", "chunk_bytes": 1 << 20}, "no path"),
        ("warm", {"ranges": "0", "uuid": "\x1b", "chunk_bytes": 1 << 20}, "plain characters"),
        ("warm", {"uuid": "u", "chunk_bytes": 1 << 20}, "it has no range"),
        ("pin", {"path": "srv"}, "must begin with /"),
        ("unpin", {}, "needs either a pin or a path"),
        ("unpin", {"pin": 1, "path": "/a"}, "needs either a pin or a path"),
        ("unpin", {"pin": 0}, "is not the number of a pin"),
        ("unpin", {"pin": True}, "is not the number of a pin"),
        ("forget", {}, "forget needs absent"),
        ("forget", {"absent": ""}, "must be a text that is not empty"),
        ("forget", {"absent": 7}, "must be a text that is not empty"),
        ("forget", {"absent": "x" * 256}, "must be at most 255 plain characters"),
        ("forget", {"absent": "bcache0\n"}, "must be at most 255 plain characters"),
        ("forget", {"absent": "\u202ebcache0"}, "must be at most 255 plain characters"),
        ("job", {"job": 0, "action": "pause"}, "is not the number of a job"),
        ("job", {"job": 1, "action": "stop"}, "unknown action 'stop'"),
        ("undo", {"action_id": -1}, "not the number of a knob write"),
        ("undo", {"action_id": 1 << 63}, "not the number of a knob write"),
        ("policy_save", {"name": "x", "text": ""}, "must be a text"),
        ("policy_save", {"name": "x", "text": "\ud800"}, "must be Unicode text"),
        (
            "policy_save",
            {"name": "x", "text": "é" * (BYTES_MAX // 2 + 1)},
            "must not be longer than 64 KiB",
        ),
    ],
)
def test_an_invalid_argument_is_refused_with_the_reason(
    kind: str, args: dict[str, Any], message: str
) -> None:
    assert message in refused(kind, args)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 65,
        "../x",
        "a/b",
        "a.b",
        ".x",
        "-x",
        "Night",
        "a b",
        "a\n",
        "ä",
        "x~",
        "\0",
        7,
        None,
    ],
)
def test_an_unsafe_policy_name_is_refused(name: Any) -> None:
    assert "must have only a-z, 0-9 and -" in refused("policy_remove", {"name": name})


@pytest.mark.parametrize("kind", [k for k, r in INTENT_SPECS.items() if r.scope is Scope.ONE])
def test_without_a_volume_it_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match="needs a volume"):
        check_intent(kind, None, GOOD[kind])


@pytest.mark.parametrize("kind", ["policy_save", "policy_remove"])
def test_a_policy_request_takes_no_volume(kind: str) -> None:
    with pytest.raises(UsageError, match="takes no volume"):
        check_intent(kind, "bcache0", GOOD[kind])


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown request: heat"):
        check_intent("heat", None, {})


@pytest.mark.parametrize("where", ["bcache0", volume()])
def test_the_arguments_of_a_valid_request_are_parsed(where: Any) -> None:
    assert check_intent("mode", where, {"mode": "enforce"}).mode is Mode.ENFORCE
    args = {"knob": "sequential_cutoff", "value": "1MiB", "for_ns": None}
    expected = IntentArgs(knob="sequential_cutoff", value="1048576")
    assert check_intent("set", where, args) == expected
    assert check_intent("hold", where, {"on": None}) == IntentArgs()


def test_with_a_volume_its_kind_is_checked() -> None:
    writecache = replace(volume(), kind=Kind.DM_WRITECACHE)
    args = {"knob": "writeback_percent", "value": "20"}
    check_intent("set", "vg/data", args)
    with pytest.raises(UsageError, match="has no knob to set"):
        check_intent("set", writecache, args)
    with pytest.raises(UsageError, match="has no gate to open"):
        check_intent("drain", writecache, GOOD["drain"])
    check_intent("drain", "vg/data", GOOD["drain"])
