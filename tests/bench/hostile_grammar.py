# SPDX-License-Identifier: GPL-2.0-only
"""Lines that a hostile client of the control socket sends: a grammar of requests, and what is done
to them. Pure: the same seed gives the same lines.

No line stops the tuner by right, as any client may: such a line names a volume that is not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

Document = dict[str, Any]
NOBODY: Final = "bcache7"
"""A volume that is not there."""
LINE_BYTES: Final = 65536

_SENTENCE: Final = "x'; DROP TABLE intents; --"
_TEXTS: Final = (
    *("", " ", "a" * 65, "a" * 300, "../../etc/passwd", "/dev/sda", _SENTENCE, "%s%n%p", "$(id)"),
    *(
        "\x1b]0;owned\x07",
        "\x1b[2J",
        "\r\n{}",
        "\x00",
        "a\x00b",
        "\u202egnp.exe",
        "\u200b",
        "é" * 64,
    ),
    *("bcache*", "dm-0", "vg/data", "💾" * 255, "null", "true", "-1", "1e400", "NaN"),
)
_NUMBERS: Final = (-1, 0, 1, 2**31, 2**63 - 1, 2**63, 10**18, int("9" * 400))
_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"a": {}},
    1.5,
    *_NUMBERS,
    *_TEXTS,
)
_POLICY: Final = "version: 1\nname: {name}\nwhy: {why}\nmatch: {{volume: nowhere*}}\n"
_BASES: Final[tuple[Document, ...]] = (
    {"kind": "mode", "volume": NOBODY, "args": {"mode": "observe"}},
    {"kind": "hold", "volume": NOBODY, "args": {"on": True, "for_ns": 60_000_000_000}},
    {"kind": "restore", "volume": NOBODY, "args": {}},
    {"kind": "clean", "volume": NOBODY, "args": {"within_ns": 60_000_000_000}},
    {"kind": "set", "volume": NOBODY, "args": {"knob": "sequential_cutoff", "value": "1MiB"}},
    {"kind": "drain", "volume": NOBODY, "args": {"for_ns": 60_000_000_000}},
    {"kind": "release", "volume": NOBODY, "args": {"knob": "writeback_percent"}},
    {"kind": "apply", "volume": NOBODY, "args": {"id": "EBB-206"}},
    {"kind": "undo", "volume": None, "args": {"action_id": 1 << 40}},
    {"kind": "policy_save", "args": {"name": "x", "text": "version: 1\nname: x\nwhy: [\n"}},
    {"kind": "policy_remove", "args": {"name": "not-there"}},
)
_OF_ALL_VOLUMES: Final = ("hold", "restore")
"""These mean every volume where none is named."""


def line(random: Random) -> bytes:
    """One line with its newline, wrong in most cases."""
    if random.random() < 0.25:
        return random.choice(_RAW)(random) + b"\n"
    document = request(random)
    for _ in range(random.randint(0, 3)):
        random.choice(_CHANGES)(random, document)
    if document.get("kind") in _OF_ALL_VOLUMES and not document.get("volume"):
        document["volume"] = NOBODY
    text = json.dumps(document, ensure_ascii=random.random() < 0.5)
    data = text.encode(errors="surrogatepass") + b"\n"
    return _torn(random, data) if random.random() < 0.2 else data


def request(random: Random) -> Document:
    """A whole request that may be refused for its meaning only."""
    base = random.choice(_BASES)
    return {"v": 1, "id": f"h{random.getrandbits(32)}", **base, "args": dict(base["args"])}


def half(random: Random) -> bytes:
    """A request without its end."""
    data = json.dumps(request(random)).encode()
    return data[: random.randint(1, len(data))]


def policy(random: Random, number: int) -> Document:
    """A policy that is right, long enough to take time, for volumes that are not there."""
    name = f"hostile-{number}"
    rules = "".join(
        f"  - {{name: r{rule}, why: {random.getrandbits(32)}, when: {{dirty_data: '> 1MiB'}},"
        " set: {destage_rate: max}, until: {dirty_data: '< 1MiB'}}\n"
        for rule in range(random.randint(1, 50))
    )
    text = _POLICY.format(name=name, why=random.getrandbits(64)) + "rules:\n" + rules
    args = {"name": name, "text": text[: LINE_BYTES - 4096]}
    return {"v": 1, "id": f"p{number}", "kind": "policy_save", "args": args}


# ---- what is no request at all -------------------------------------------------------------------
def _noise(random: Random) -> bytes:
    return random.randbytes(random.randint(0, 4096)).replace(b"\n", b" ")


def _deep(random: Random) -> bytes:
    depth = random.choice((100, 1000, 30_000))
    opened, closed = random.choice(((b"[", b"]"), (b'{"a":', b"}")))
    data = opened * min(depth, (LINE_BYTES - 100) // len(opened))
    return data + closed * (len(data) // len(opened)) if random.random() < 0.5 else data


def _long(random: Random) -> bytes:
    return b'{"v":1,"id":"' + b"a" * (LINE_BYTES + random.randint(-64, 64))


def _digits(random: Random) -> bytes:
    digits = b"9" * random.choice((30, 4000, 40_000))
    return b'{"v":1,"id":"n","kind":"drain","volume":"bcache7","args":{"for_ns":%s}}' % digits


def _plain(random: Random) -> bytes:
    return random.choice((b"", b"null", b"[]", b"1", b'"a"', b"{}", b"}", b"\xff\xfe", b"{" * 9))


def _floats(random: Random) -> bytes:
    return b'{"v":1,"id":"f","kind":"drain","args":{"for_ns":%s}}' % random.choice(
        (b"NaN", b"Infinity", b"1e999", b"-0.0", b"1e-999")
    )


def _twice(_: Random) -> bytes:
    return b'{"v":1,"v":1,"id":"a","id":"b","kind":"mode","kind":"undo"}'


_RAW: Final[tuple[Callable[[Random], bytes], ...]] = (
    *(_noise, _deep, _long, _digits, _plain, _floats, _twice),
)


# ---- what is done to a request -------------------------------------------------------------------
def _other_value(random: Random, document: Document) -> None:
    key = random.choice(("v", "id", "kind", "volume", "args", "label"))
    document[key] = random.choice(_VALUES)


def _other_argument(random: Random, document: Document) -> None:
    if isinstance(document.get("args"), dict):
        name = random.choice([*document["args"], "mode", "text", "for_ns", random.choice(_TEXTS)])
        document["args"][name] = random.choice(_VALUES)


def _less(random: Random, document: Document) -> None:
    if document:
        del document[random.choice(list(document))]


def _more(random: Random, document: Document) -> None:
    document[random.choice(_TEXTS)] = random.choice(_VALUES)


def _many(random: Random, document: Document) -> None:
    document["args"] = {f"a{number}": number for number in range(random.choice((17, 500)))}


_CHANGES: Final[tuple[Callable[[Random, Document], None], ...]] = (
    *(_other_value, _other_argument, _less, _more, _many),
)


def _torn(random: Random, data: bytes) -> bytes:
    """Bytes lost, doubled or changed; the newline stays."""
    at = random.randrange(len(data))
    more = random.choice((b"", b"\x00", b'"', b"{", b"\xed\xa0\x80", data[at:-1][:40]))
    return data[:at] + more + data[at + random.randint(0, 3) : -1] + b"\n"
