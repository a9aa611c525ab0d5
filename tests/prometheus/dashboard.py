# SPDX-License-Identifier: GPL-2.0-only
"""The Grafana dashboards as lists of queries. Pure, but for reading the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.prometheus.stack import DASHBOARDS

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

    board: str
    panel: str
    ref: str
    expression: str
    instant: bool

    def __str__(self) -> str:
        return f"{self.board}: {self.panel} {self.ref}"


def document(board: str) -> dict[str, Any]:
    """Return a dashboard by its name."""
    found: dict[str, Any] = json.loads(DASHBOARDS[board].read_text())
    return found


def panels(board: str) -> list[dict[str, Any]]:
    """All but the rows that only group others."""
    return [panel for panel in document(board)["panels"] if panel["type"] != "row"]


def queries() -> list[Query]:
    """Of all panels of all dashboards."""
    return [
        Query(board, panel["title"], target["refId"], put_in(target["expr"]), target["instant"])
        for board in DASHBOARDS
        for panel in panels(board)
        for target in panel["targets"]
    ]


def put_in(text: str) -> str:
    """Raises ValueError for a variable that is not known here."""
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    if re.search(r"\$\w", text):
        raise ValueError(f"a variable that is never set: {text}")
    return text
