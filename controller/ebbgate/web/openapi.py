# SPDX-License-Identifier: GPL-2.0-only
"""The OpenAPI document: FastAPI's routes and parameters, our schemas. Pure.

The same text whatever versions of FastAPI and pydantic are installed: what they write differently
is written anew here.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ebbgate import __version__
from ebbgate.web.errors import Error
from ebbgate.web.models.json_schema import components
from ebbgate.web.routes import declare
from ebbgate.web.security import QUESTIONS, TOKEN_PATH

_ABOUT: Final = (
    "What ebbgate measures, decides and does. Field names end with their unit; times are seconds"
    " since 1970 unless they end in `_ns`; what is unknown is null, never zero. Every error has the"
    " same shape. Changes need `Authorization: Bearer TOKEN` (`ebbgate web-token`)."
)


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    made = get_openapi(title="ebbgate", version=__version__, description=_ABOUT, routes=app.routes)
    paths = {path: _path(path, made["paths"][path]) for path in sorted(made["paths"])}
    scheme = {"type": "http", "scheme": "bearer", "description": "The token of this machine."}
    schemas = components(Error, *declare.ANSWERS.values())
    for taken in declare.TAKEN:
        # A key that is not known is refused (plain.py), since it is a typing error.
        schemas[taken]["additionalProperties"] = False
    return {
        "openapi": "3.1.0",
        "info": made["info"],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": scheme},
        },
    }


def text(app: FastAPI) -> str:
    """The document as it is committed."""
    return json.dumps(document(app), indent=2, sort_keys=True) + "\n"


class Methods:
    """What each path of a document takes."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._taken = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), sorted(map(str.upper, operations)))
            for path, operations in described["paths"].items()
        ]

    def of(self, path: str) -> list[str]:
        """Nothing for a path that there is not."""
        return [each for known, taken in self._taken if known.fullmatch(path) for each in taken]


def _path(path: str, operations: dict[str, Any]) -> dict[str, Any]:
    return {method: _operation(path, method, each) for method, each in operations.items()}


def _operation(path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    made = {
        "operationId": _name(path, method),
        "summary": operation["summary"],
        "description": " ".join(operation.get("description", "").split()),
        "tags": operation.get("tags", []),
        "responses": {
            status: ours
            for status, each in operation["responses"].items()
            if (ours := _ours(each)) is not None
        },
    }
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    if parameters:
        made["parameters"] = parameters
    if "requestBody" in operation:
        made["requestBody"] = operation["requestBody"]
    if path == TOKEN_PATH or (method != "get" and path not in QUESTIONS):
        made["security"] = [{"token": []}]
    return made


def _name(path: str, method: str) -> str:
    words = path.removeprefix("/api/v1/").replace("{", "").replace("}", "").replace("-", "_")
    return f"{method}_{words.replace('/', '_')}"


def _ours(response: dict[str, Any]) -> dict[str, Any] | None:
    """FastAPI adds its own shape of error, and JSON of any kind beside what a route answers."""
    content = {
        kind: each
        for kind, each in response.get("content", {}).items()
        if each.get("schema") and "HTTPValidation" not in str(each)
    }
    return {**response, "content": content} if content else None


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    schema = dict(parameter["schema"])
    for each in schema.pop("anyOf", ()):
        if each != {"type": "null"}:
            schema |= each
    kept = {
        # The older pydantic writes bounds of whole numbers as floats.
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in sorted(schema.items())
        if key not in ("title", "description")
    }
    return {
        "name": parameter["name"],
        "in": parameter["in"],
        "required": parameter.get("required", False),
        "description": parameter.get("description", ""),
        "schema": kept,
    }
