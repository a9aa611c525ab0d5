# SPDX-License-Identifier: GPL-2.0-only
"""The base of the API's models, for pydantic 1 (Debian 12) and 2 alike; their JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Self, dataclass_transform

from pydantic import BaseModel, Field

_READ: Final = "model_validate" if hasattr(BaseModel, "model_validate") else "parse_obj"
_BUILD: Final = "model_construct" if hasattr(BaseModel, "model_construct") else "construct"


def doc(
    text: str,
    unit: str = "",
    example: object = None,
    bounds: Mapping[str, object] | None = None,
    default: object = ...,
) -> Any:
    """Describe a field, which is required without a `default`. `unit`: of figures; `1` for a share
    from 0 to 1.

    `bounds`: shown only, in the words of JSON Schema; the code that takes the value checks them.
    """
    extra: dict[str, Any] = dict(bounds or {})
    if unit:
        extra["x-unit"] = unit
        text += f" Unit: {unit}."
    if example is not None:
        extra["examples"] = [example]
    return Field(default, description=text, json_schema_extra=extra)


@dataclass_transform(kw_only_default=True, field_specifiers=(doc,))
class Model(BaseModel):
    """An object of the API."""

    @classmethod
    def read(cls, document: object) -> Self:
        """Build from a document; unknown keys are ignored. Raises pydantic's ValidationError."""
        found: Self = getattr(cls, _READ)(document)
        return found

    @classmethod
    def unchecked(cls, **values: object) -> Self:
        """Build without validation, for long columns of figures that this program computed."""
        found: Self = getattr(cls, _BUILD)(**values)
        return found


def to_json(value: Any) -> bytes:
    """Encode as compact JSON. Raises ValueError for infinity and NaN, which JSON lacks."""
    # Not with pydantic's encoder, of which each generation has another; json's is written in C.
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=vars)
    return text.encode()


def merged(document: bytes, more: bytes) -> bytes:
    """Merge two JSON objects, neither of which is empty, into one."""
    return b"%s,%s" % (document[:-1], more[1:])
