# SPDX-License-Identifier: GPL-2.0-only
"""The Grafana dashboard as a list of queries. Pure, but for reading the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.prometheus.stack import DASHBOARD

VARIABLES: Final[Mapping[str, str]] = {
    "$job": ".*",
    "$instance": ".*",
    "$volume": ".*",
    "$__rate_interval": "20s",
    "$__range": "30s",
}
"""What Grafana would put in: all of everything."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel, with the variables put in."""

    panel: str
    ref: str
    expression: str
    instant: bool


def panels() -> list[dict[str, Any]]:
    """All but the rows that only group others."""
    document = json.loads(DASHBOARD.read_text())
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    """Of all panels."""
    return [
        Query(panel["title"], target["refId"], put_in(target["expr"]), target["instant"])
        for panel in panels()
        for target in panel["targets"]
    ]


def put_in(text: str) -> str:
    """Raises ValueError for a variable that is not known here."""
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    if re.search(r"\$\w", text):
        raise ValueError(f"a variable that is never set: {text}")
    return text
