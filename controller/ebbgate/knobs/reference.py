# SPDX-License-Identifier: GPL-2.0-only
"""Prints the table of knobs in README.md, "Safety". Pure.

`python -m ebbgate.knobs.reference` prints it; a test holds the README to it.
"""

from __future__ import annotations

from ebbgate.knobs.catalog import KNOBS
from ebbgate.knobs.knob import Knob
from ebbgate.knobs.values import format_range, format_value

_HEAD = "| knob | cache | bounds | what for | reset by |\n|---|---|---|---|---|"


def block() -> str:
    """Return the table of every knob that ebbgate writes, between the marks of the README."""
    rows = [_HEAD, *(_row(knob) for knob in KNOBS if knob.written)]
    return "\n".join(("<!-- knobs -->", *rows, "<!-- end of knobs -->"))


def _row(knob: Knob) -> str:
    # A trigger leaves no value behind.
    resets = "" if knob.trigger else ", ".join(sorted(knob.resets))
    name = f"{knob.name}:DISK" if knob.per_disk else knob.name
    kinds = ", ".join(sorted(knob.kinds))
    cells = (f"`{name}`", kinds, _bounds(knob), knob.purpose, resets or "-")
    return f"| {' | '.join(cells)} |"


def _bounds(knob: Knob) -> str:
    if knob.bounds is None:
        return f"{' or '.join(knob.words)} only" if knob.words else "-"
    if knob.bounds.low == knob.bounds.high:
        return f"{format_value(knob.key, knob.bounds.low)} only"
    return format_range(knob.key)


if __name__ == "__main__":
    print(block())
