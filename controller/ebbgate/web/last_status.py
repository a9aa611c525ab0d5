# SPDX-License-Identifier: GPL-2.0-only
"""The daemon's last words on its volumes: read, and put as the API says them, once each. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property

from pydantic import ValidationError

from ebbgate.store.queries import Live
from ebbgate.store.queries_web import LiveRow
from ebbgate.web import convert
from ebbgate.web.models.base import to_json


class Told:
    """One document. Never changed once it is made."""

    def __init__(self, row: LiveRow) -> None:
        self.row = row
        self.live = Live(row.volume, row.at_unix_ns, json.loads(row.text))

    @cached_property
    def steady(self) -> bytes | None:
        """What does not change until the daemon speaks again, as an object in JSON; None for a
        document of another version.
        """
        try:
            found = dict(vars(convert.volume(self.live, None, self.live.at_unix_ns, None)))
        except ValidationError:
            return None
        for name in convert.passing(self.live, None, self.live.at_unix_ns, None):
            del found[name]
        return to_json(found)


def of_rows(rows: Iterable[LiveRow], before: Mapping[str, Told]) -> dict[str, Told]:
    """By volume; those of `before` that are said again are kept as they are."""
    found: dict[str, Told] = {}
    for row in rows:
        known = before.get(row.volume)
        found[row.volume] = known if known and known.row == row else Told(row)
    return found
