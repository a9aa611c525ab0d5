# SPDX-License-Identifier: GPL-2.0-only
"""Policies: what there is, and whether a text is right. I/O: HTTP, reads policy files."""

from __future__ import annotations

import json
from typing import Any, Final

from fastapi import APIRouter, Depends
from starlette.responses import Response

from ebbgate.policy.language.schema import schema
from ebbgate.web import policy_service as looked_at
from ebbgate.web.models.policies import Checked, DryRunOf, DryRunResult, Policies, PolicyText
from ebbgate.web.request_body import taking
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import answers
from ebbgate.web.routes.dry_run import DryRuns
from ebbgate.web.snapshot import Databases

_TEXT: Final[Any] = Depends(taking(PolicyText))
_RUN: Final[Any] = Depends(taking(DryRunOf))


def routes_policies(databases: Databases) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["policies"])
    folder = databases.config.policy_dir
    everything = looked_at.AllPolicies(folder)
    runs = DryRuns(databases)
    about = answers(Policies)
    about["openapi_extra"]["responses"]["200"] = {
        "description": "The JSON Schema of the policy language.",
        "content": {"application/schema+json": {"schema": {"type": "object"}}},
    }
    language = json.dumps(schema()).encode()

    @router.get("/policies", summary="All policies", **answers(Policies))
    def policies() -> Response:
        """The administrator's files, the shipped ones, and what runs for each volume."""
        return reply(everything.now(databases.look(1.0).live))

    @router.get("/policy-schema", summary="The policy language", **about)
    def policy_schema() -> Response:
        """For editors: every key with its type, its range and what it is for."""
        return Response(language, media_type="application/schema+json")

    @router.post(
        "/policies/check",
        summary="Is a policy right?",
        **answers(Checked, 400, 413, 415, 422, takes=PolicyText),
    )
    def check(asked: PolicyText = _TEXT) -> Response:
        """A text as if it were a file of the folder. Changes nothing, and so needs no token."""
        return reply(looked_at.check(asked.name, asked.text, folder))

    refused = (400, 404, 413, 415, 422, 503)

    @router.post(
        "/policies/dry-run",
        summary="What a policy would have decided",
        **answers(DryRunResult, *refused, takes=DryRunOf),
    )
    def dry_run(asked: DryRunOf = _RUN) -> Response:
        """On what the history has of the last hours, beside another policy. Changes nothing, and so
        needs no token; one at a time.
        """
        return reply(runs.run(asked))

    return router
