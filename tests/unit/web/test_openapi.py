# SPDX-License-Identifier: GPL-2.0-only
"""The OpenAPI document is complete, committed, and the same with every set of packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbgate.kernel.run import run
from ebbgate.web import openapi
from ebbgate.web.models.codec import Mismatch, build, to_json
from ebbgate.web.models.intents import NewIntent
from ebbgate.web.models.live import Volume
from tests.house_rules import REPO
from tests.unit.web.web_fixture import Bench

COMMITTED = REPO / "webui/openapi.json"
OTHER_PYTHON = os.environ.get("EBBGATE_OTHER_PYTHON", "")
"""A Python with the other set of packages (current FastAPI and pydantic, or Debian 12's)."""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return openapi.document(Bench(tmp_path_factory.mktemp("openapi")).api.app)


def properties(document: Any) -> Iterator[tuple[str, Any]]:
    for name, schema in document["components"]["schemas"].items():
        for key, each in schema["properties"].items():
            yield f"{name}.{key}", each


def test_the_committed_document_is_this_one(tmp_path: Path) -> None:
    made = openapi.text(Bench(tmp_path).api.app)
    assert made == COMMITTED.read_text(), "python -m ebbgate.web --openapi > webui/openapi.json"


@pytest.mark.skipif(not OTHER_PYTHON, reason="EBBGATE_OTHER_PYTHON names no other set of packages")
def test_the_other_set_of_packages_writes_the_same_document() -> None:
    argv = ["env", f"PYTHONPATH={REPO / 'controller'}", OTHER_PYTHON, "-m", "ebbgate.web"]
    assert run([*argv, "--openapi"]).stdout == COMMITTED.read_text()


def test_every_field_says_what_it_is(document: Any) -> None:
    silent = [name for name, each in properties(document) if not each.get("description")]
    assert silent == []


def test_every_figure_says_its_unit(document: Any) -> None:
    bare = [
        name
        for name, each in properties(document)
        if _is_figure(each)
        and "x-unit" not in each
        and not name.endswith((".id", ".pid", "_id", ".intents"))
    ]
    assert bare == []


@pytest.mark.parametrize(
    ("ending", "unit"),
    [("_bytes", "B"), ("_bytes_per_s", "B/s"), ("_ns", "ns"), ("_s", "s"), ("_ratio", "1")],
)
def test_a_unit_fits_the_name_of_its_field(document: Any, ending: str, unit: str) -> None:
    longer = ("bytes_per_s", "_unix_s", "_unix_ns") if ending in ("_s", "_ns") else ()
    for name, each in properties(document):
        if name.endswith(ending) and not name.endswith(longer):
            assert each.get("x-unit", unit) == unit, name


def _is_figure(schema: Any) -> bool:
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return bool({"integer", "number"} & set(kinds))


def test_every_operation_names_its_refusals_and_its_parameters(document: Any) -> None:
    for path, operations in document["paths"].items():
        for method, each in operations.items():
            where = f"{method} {path}"
            assert each["summary"] and each["description"], where
            assert {"421", "429", "500"} <= set(each["responses"]), where
            for parameter in each.get("parameters", ()):
                assert parameter["description"], where
            for status, response in each["responses"].items():
                if int(status) >= 400:
                    schema = response["content"]["application/json"]["schema"]
                    assert schema["$ref"].endswith("/Error"), where


def test_every_reference_leads_somewhere(document: Any) -> None:
    known = document["components"]["schemas"]

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                assert value["$ref"].rpartition("/")[2] in known
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(document)


def test_changes_and_nothing_else_need_the_token(document: Any) -> None:
    secured = {
        (method, path)
        for path, operations in document["paths"].items()
        for method, each in operations.items()
        if each.get("security")
    }
    assert secured == {("get", "/api/v1/token"), ("post", "/api/v1/intents")}


# ---- the dataclasses behind it -------------------------------------------------------------------
def test_a_live_document_has_no_key_that_the_api_does_not_know(still: Bench) -> None:
    live = still.api.databases.look().live["bcache0"].document
    known = set(Volume.__dataclass_fields__)
    assert set(live) - known == {"totals"}, "what Prometheus alone reads"


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], ""),
        ({}, "kind"),
        ({"kind": "mode", "volume": 1}, "volume"),
        ({"kind": "mode", "args": []}, "args"),
        ({"kind": "mode", "more": 1}, "more"),
        ({"kind": True}, "kind"),
    ],
)
def test_a_mismatch_names_its_place(document: Any, where: str) -> None:
    with pytest.raises(Mismatch) as caught:
        build(NewIntent, document, strict=True)
    assert caught.value.where == where


def test_what_was_built_is_written_as_it_was() -> None:
    made = build(NewIntent, {"kind": "mode", "args": {"mode": "enforce"}}, strict=True)
    assert to_json(made) == b'{"kind":"mode","volume":null,"args":{"mode":"enforce"}}'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_does_not_know_is_never_written(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json([value])
