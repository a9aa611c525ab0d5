# SPDX-License-Identifier: GPL-2.0-only
"""What schemathesis cannot know from the document. Loaded by it, within its own environment."""

from __future__ import annotations

import re
from typing import Any

import schemathesis

# ---- valid requests ------------------------------------------------------------------------------
# Random text is hardly ever a policy or a request. None of these may be refused.
_POLICY = "version: 1\nname: night\nwhy: A test.\nlimits:\n  sequential_cutoff: {max: 64MiB}\n"


def _intent(kind: str, volume: str | None = "bcache0", **args: Any) -> dict[str, Any]:
    return {"kind": kind, "volume": volume, "args": args}


GOOD: dict[str, list[dict[str, Any]]] = {
    "POST /api/v1/intents": [
        _intent("mode", mode="enforce"),
        _intent("hold", None),
        _intent("hold", on=False, for_ns=None),
        _intent("restore", "vg-data2"),
        _intent("clean", "vg-data2", within_ns=10**9),
        _intent("set", knob="sequential_cutoff", value="1MiB", for_ns=10**10),
        _intent("drain", for_ns=3600 * 10**9),
        _intent("release"),
        _intent("release", knob="writeback_percent"),
        _intent("apply", id="EBB-206"),
        _intent("undo", None, action_id=1),
        _intent("policy_save", None, name="night", text=_POLICY),
        _intent("policy_remove", None, name="night"),
        _intent("warm", None, path="/srv/db"),
        _intent("job", None, job=1, action="pause"),
        _intent("warm", None, ranges="0+f,10,-21", chunk_bytes=2**20, uuid="0b1e5000"),
        _intent("warm", ranges="0+f", chunk_bytes=2**21),
        _intent("hot"),
        _intent("pin", None, path="/srv/db"),
        _intent("unpin", None, pin=1),
        _intent("forget", None, absent="bcache9"),
        _intent("warm", from_bytes=2**20, to_bytes=2**30, bandwidth_bytes_per_s=2**24),
    ],
    "POST /api/v1/policies/check": [
        {"name": "night", "text": _POLICY},
        {"name": "0-9", "text": "\ud83c\udf0a: [\n"},
    ],
    "POST /api/v1/policies/dry-run": [
        {"volume": "bcache0", "text": _POLICY, "hours": 0.1},
        {"volume": "bcache1", "text": _POLICY, "against": "observe-only", "hours": 0.05},
        {"volume": "vg-data2", "text": _POLICY, "against": None, "hours": 0.05},
    ],
}


def before_add_examples(context: Any, examples: list[Any]) -> None:
    """Try each of them once."""
    for body in GOOD.get(context.operation.label, ()):
        examples.append(context.operation.Case(body=body, media_type="application/json"))


# ---- what no schema has --------------------------------------------------------------------------
_TIMES = (
    "^since_unix_s is not before until_unix_s$",
    " points, since none is longer than an hour$",
)
# By operation: errors of valid parts that do not fit together.
_RELATIONS: dict[str, tuple[str, ...]] = {
    "GET /api/v1/decisions": _TIMES,
    "GET /api/v1/volumes/{volume}/actions": _TIMES,
    "GET /api/v1/volumes/{volume}/latency": _TIMES,
    "GET /api/v1/volumes/{volume}/samples": _TIMES,
    "POST /api/v1/intents": (
        r"^[a-z_]+ (is for|takes no|needs) ",
        r"^[a-z_]+: [a-z_]+: ",
        "^warm: a volume takes a range that ends after its start, and no path$",
        "^warm: ranges",
        "^[a-z_]+: unknown argument ",
        "^X-Ebbgate-Who ",
        "^(args|volume): ",
        "^the request has [0-9]+ bytes; ",
    ),
    "POST /api/v1/policies/dry-run": (r"^the policy:\d",),
}


def filter_failure(_context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Return False for an error of a valid case, for a reason that no schema can express."""
    label = case.operation.label
    if failure.code != "ST202" or response.status_code != 422 or case.body in GOOD.get(label, ()):
        return True
    message = response.json()["error"]["message"]
    return not any(re.search(each, message) for each in _RELATIONS.get(label, ()))


schemathesis.hook(before_add_examples)
schemathesis.hook(filter_failure)
