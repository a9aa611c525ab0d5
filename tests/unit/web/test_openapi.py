# SPDX-License-Identifier: GPL-2.0-only
"""The OpenAPI document is complete, and is the one that current packages make."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from ebbgate.kernel.run import run
from ebbgate.model.status_json import status_to_json
from ebbgate.web.models.base import to_json
from ebbgate.web.models.live import Volume
from tests.house_rules import REPO
from tests.unit.web.web_fixture import DOCUMENT, WebHarness, add_page

COMMITTED = REPO / "webui/openapi.json"
_CURRENT = pydantic.VERSION.startswith("2.")


def properties() -> Iterator[tuple[str, Any]]:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for key, each in schema.get("properties", {}).items():
            yield f"{name}.{key}", each


@pytest.mark.skipif(not _CURRENT, reason="pydantic 1 forgets which fields may be null")
def test_committed_document_is_made_by_current_packages() -> None:
    argv = ["env", f"PYTHONPATH={REPO / 'controller'}", sys.executable, "-m", "ebbgate.web"]
    made = run([*argv, "--openapi"]).stdout
    assert made == COMMITTED.read_text(), "python -m ebbgate.web --openapi > webui/openapi.json"


def test_both_generations_describe_the_same_paths_and_fields(still: WebHarness) -> None:
    made = still.api.app.openapi()
    assert set(made["paths"]) == set(DOCUMENT["paths"])
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            known = DOCUMENT["paths"][path][method]
            assert set(operation["responses"]) == set(known["responses"]), path
    schemas = DOCUMENT["components"]["schemas"]
    for name, schema in made["components"]["schemas"].items():
        assert set(schema.get("properties", ())) == set(schemas[name].get("properties", ())), name
        assert schema.get("required") == schemas[name].get("required"), name


def test_the_installed_document_is_served(tmp_path: Path) -> None:
    add_page(tmp_path, "openapi.json", COMMITTED.read_bytes())
    assert WebHarness(tmp_path).get("/openapi.json").body == COMMITTED.read_bytes()


def test_every_field_has_a_description() -> None:
    silent = [name for name, each in properties() if not each.get("description")]
    assert silent == []


def test_every_figure_has_a_unit() -> None:
    bare = [
        name
        for name, each in properties()
        if _is_figure(each)
        and "x-unit" not in each
        and not name.endswith((".id", ".pid", "_id", ".intents"))
    ]
    assert bare == []


@pytest.mark.parametrize(
    ("ending", "unit"),
    [("_bytes", "B"), ("_bytes_per_s", "B/s"), ("_ns", "ns"), ("_s", "s"), ("_ratio", "1")],
)
def test_a_unit_fits_the_name_of_its_field(ending: str, unit: str) -> None:
    longer = ("bytes_per_s", "_unix_s", "_unix_ns") if ending in ("_s", "_ns") else ()
    for name, each in properties():
        if name.endswith(ending) and not name.endswith(longer):
            assert each.get("x-unit", unit) == unit, name


def _is_figure(schema: Any) -> bool:
    kinds = {each.get("type") for each in schema.get("anyOf", [schema])}
    return bool({"integer", "number"} & kinds)


def test_every_operation_describes_errors_and_parameters() -> None:
    for path, operations in DOCUMENT["paths"].items():
        for method, each in operations.items():
            where = f"{method} {path}"
            assert each["summary"] and each["description"], where
            assert {"421", "500"} <= set(each["responses"]), where
            for parameter in each.get("parameters", ()):
                assert parameter["description"], where
            for status, response in each["responses"].items():
                if int(status) >= 400:
                    schema = response["content"]["application/json"]["schema"]
                    assert schema["$ref"].endswith("/Error"), where


def test_every_reference_resolves() -> None:
    known = DOCUMENT["components"]["schemas"]

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                assert value["$ref"].rpartition("/")[2] in known
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(DOCUMENT)


def test_only_changes_need_the_token() -> None:
    secured = {
        (method, path)
        for path, operations in DOCUMENT["paths"].items()
        for method, each in operations.items()
        if each.get("security")
    }
    assert secured == {("get", "/api/v1/token"), ("post", "/api/v1/intents")}


# ---- the models behind it ------------------------------------------------------------------------
def test_every_key_of_a_status_is_in_the_api(still: WebHarness) -> None:
    live = status_to_json(still.api.databases.snapshot().live.volumes["bcache0"].status)
    assert set(live) - set(Volume.__annotations__) == {"totals"}, "what Prometheus alone reads"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_infinity_and_nan_are_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json([value])
