# SPDX-License-Identifier: GPL-2.0-only
"""Metrics as text, in OpenMetrics 1.0 and in the older format of Prometheus (0.0.4). Pure.

A value that is None is left out: unknown is never zero. Names and what they mean are a table
(`web.metrics_names`); a name that is not in it is a mistake in this program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final

OPENMETRICS_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LABEL_MAX: Final = 128
"""Letters of a label's value; no name of a volume or a rule is longer."""

_BEYOND: Final = 1 << 63
"""No count of anything here is as large."""

Labels = Mapping[str, object]


class Type(StrEnum):
    """As OpenMetrics calls them; the older format knows `info` and `stateset` as gauges."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"
    STATESET = "stateset"


@dataclass(frozen=True, slots=True)
class Family:
    """`name` without `_total` and `_info`, but with its unit where it has one."""

    name: str
    type: Type
    help: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Buckets:
    """A histogram: `counts` by bucket, whose upper edges are `edges`; more counts than edges are
    above the last one. `total`: the sum of all values, None where nobody knows it.
    """

    edges: Sequence[float]
    counts: Sequence[int]
    total: float | None


class Page:
    """Collects the samples of all families; each family's stand together in the text."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = {family.name: family for family in families}
        self._lines: dict[str, list[tuple[str, Labels, float]]] = {}

    def add(self, name: str, labels: Labels, value: Any) -> None:
        """A sample, where the value is a number."""
        known = number(value)
        if known is not None:
            suffix = {Type.COUNTER: "_total", Type.INFO: "_info"}.get(self._families[name].type, "")
            self._put(name, suffix, labels, known)

    def add_states(self, name: str, labels: Labels, states: Iterable[str], state: str) -> None:
        """A sample for each state that there is; the one that holds is 1."""
        for each in states:
            self._put(name, "", {**labels, name: each}, float(each == state))

    def add_histogram(self, name: str, labels: Labels, buckets: Buckets) -> None:
        """Cumulative, as both formats want it."""
        below = list(accumulate(buckets.counts))
        count = below[-1] if below else 0
        for number_, edge in enumerate(buckets.edges):
            so_far = below[number_] if number_ < len(below) else count
            self._put(name, "_bucket", {**labels, "le": edge_text(edge)}, so_far)
        self._put(name, "_bucket", {**labels, "le": "+Inf"}, count)
        if buckets.total is not None:
            self._put(name, "_count", labels, count)
            self._put(name, "_sum", labels, buckets.total)

    def text(self, *, openmetrics: bool) -> str:
        """All families that have a sample, in the order of their table."""
        lines = [
            line
            for family in self._families.values()
            if family.name in self._lines
            for line in self._family(family, openmetrics)
        ]
        return "\n".join([*lines, *(["# EOF"] if openmetrics else []), ""])

    def _put(self, name: str, suffix: str, labels: Labels, value: float) -> None:
        self._lines.setdefault(self._families[name].name, []).append((suffix, labels, value))

    def _family(self, family: Family, openmetrics: bool) -> Iterator[str]:
        name, type_ = family.name, str(family.type)
        if not openmetrics:
            name += {Type.COUNTER: "_total", Type.INFO: "_info"}.get(family.type, "")
            type_ = "gauge" if family.type in (Type.INFO, Type.STATESET) else type_
        yield f"# HELP {name} {_escape(family.help, quote=openmetrics)}"
        yield f"# TYPE {name} {type_}"
        if openmetrics and family.unit:
            yield f"# UNIT {name} {family.unit}"
        for suffix, labels, value in self._lines[family.name]:
            yield f"{family.name}{suffix}{_labels(labels)} {_number_text(value)}"


def number(value: Any) -> float | None:
    """A number that a metric can have; None for anything else."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int):
        return value if abs(value) < _BEYOND else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def edge_text(edge: float) -> str:
    """`le` of a bucket. Always a float's text, as OpenMetrics wants it."""
    return repr(float(edge))


def _number_text(value: float) -> str:
    return str(int(value)) if abs(value) < _BEYOND and value == int(value) else repr(value)


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    parts = [f'{name}="{_escape(str(value)[:_LABEL_MAX])}"' for name, value in labels.items()]
    return f"{{{','.join(parts)}}}"


def _escape(text: str, *, quote: bool = True) -> str:
    """What is no text of Unicode (a half of a surrogate pair) becomes a question mark."""
    text = text.encode("utf-8", "replace").decode().replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text
