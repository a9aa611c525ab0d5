# SPDX-License-Identifier: GPL-2.0-only
"""The health has what is kept for volumes that are not here, as far as the daemon wrote it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from ebbgate.store.db import Store
from tests.unit.web.web_fixture import DOCUMENT, WebHarness, complaint

CHOICES = [{"what": "mode enforce", "since_unix_ns": 7 * 10**9}, {"what": "the hold"}]
ABSENT = [
    {"volume": "bcache0", "uuid": "u 1", "why": "it is not found", "kept": CHOICES},
    {"volume": "vg-old", "why": "no cache is attached to it", "kept": []},
]
HEALTH = DOCUMENT["paths"]["/api/v1/health"]["get"]["responses"]["200"]


def daemon_health(web: WebHarness, **own: Any) -> Any:
    """What the health says of a daemon that wrote this; it is as the document describes it."""
    with closing(Store.open(web.config.history_path)) as store, web.daemon():
        store.set_live("", {"version": "0.2.0", **own}, web.now_ns)
        answer = web.get("/health").json
    assert complaint(answer, HEALTH["content"]["application/json"]["schema"]) == ""
    return answer["daemon"]


def test_what_is_kept_is_told_with_the_command_that_drops_it(web: WebHarness) -> None:
    found = daemon_health(web, absent=ABSENT, absent_count=40)
    assert found["absent_count"] == 40
    assert found["absent"] == [
        {
            "volume": "bcache0",
            "uuid": "u 1",
            "why": "it is not found",
            "kept": [
                {"what": "mode enforce", "since_unix_s": 7.0},
                {"what": "the hold", "since_unix_s": None},
            ],
            "command": "sudo ebbgate forget 'u 1'",
        },
        {
            "volume": "vg-old",
            "uuid": None,
            "why": "no cache is attached to it",
            "kept": [],
            "command": "sudo ebbgate forget vg-old",
        },
    ]


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"absent": None, "absent_count": None},
        {"absent": "bcache0", "absent_count": "1"},
        {"absent": [{"uuid": "u"}], "absent_count": True},
        {"absent": [{"volume": 7}]},
        {"absent": {"volume": "bcache0"}, "absent_count": 1.5},
    ],
)
def test_what_another_version_wrote_is_unknown(web: WebHarness, own: dict[str, Any]) -> None:
    found = daemon_health(web, **json.loads(json.dumps(own)))
    assert (found["absent"], found["absent_count"]) == (None, None)
