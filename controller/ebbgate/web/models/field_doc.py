# SPDX-License-Identifier: GPL-2.0-only
"""What a field of an answer means and counts in, beside its type; read by `schema`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Of:
    """Annotates a field. `unit`: of figures; `1` for a share from 0 to 1, empty for words.

    `example`: a value that a reader recognises. `bounds`: of what is taken, in the words of JSON
    Schema, such as `maximum`; whoever takes it looks.
    """

    text: str
    unit: str = ""
    example: object = None
    bounds: Mapping[str, object] | None = None
