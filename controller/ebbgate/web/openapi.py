# SPDX-License-Identifier: GPL-2.0-only
"""The OpenAPI document. I/O: reads the installed document.

The committed document is the one that current FastAPI and pydantic make; Debian 12's forget which
fields may be null, so an installed server answers with the committed one.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from fastapi import FastAPI

ABOUT: Final = (
    "What ebbgate measures, decides and does. Field names end with their unit; times are seconds"
    " since 1970 unless they end in `_ns`; what is unknown is null, never zero. Every error has the"
    " same shape. Changes need `Authorization: Bearer TOKEN` (`ebbgate web-token`)."
)


def text(app: FastAPI) -> str:
    """Return the document as it is committed."""
    return json.dumps(_without_titles(app.openapi()), indent=2, sort_keys=True) + "\n"


def methods(document: dict[str, Any], path: str) -> list[str]:
    """Return what a path takes; nothing for an unknown one."""
    return sorted(
        method.upper()
        for known, operations in document["paths"].items()
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path)
        for method in operations
    )


def _without_titles(value: Any) -> Any:
    """Leave out pydantic's titles, which repeat the names of fields."""
    if isinstance(value, dict):
        return {
            key: _without_titles(each)
            for key, each in value.items()
            if key != "title" or not isinstance(each, str)
        }
    return [_without_titles(each) for each in value] if isinstance(value, list) else value
