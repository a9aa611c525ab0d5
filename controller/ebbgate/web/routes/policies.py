# SPDX-License-Identifier: GPL-2.0-only
"""Policies: what there is, and whether a text is right. I/O: HTTP, reads policy files."""

from __future__ import annotations

import json

from fastapi import APIRouter
from starlette.responses import Response

from ebbgate.policy.language.schema import schema
from ebbgate.web import policy_service
from ebbgate.web.models.policies import (
    DryRunRequest,
    DryRunResult,
    Policies,
    PolicyCheck,
    PolicyText,
)
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import JSON_BODY, of_type, refusals
from ebbgate.web.routes.dry_run import DryRuns
from ebbgate.web.snapshot import Databases


def routes_policies(databases: Databases) -> APIRouter:
    """Their routes."""
    router = APIRouter(tags=["policies"])
    folder = databases.config.policy_dir
    everything = policy_service.PolicyCatalog(folder)
    runs = DryRuns(databases)
    language = json.dumps(schema()).encode()

    @router.get("/policies", summary="All policies", response_model=Policies)
    def policies() -> Response:
        """The administrator's files, the shipped ones, and what runs for each volume."""
        return reply(everything.now(databases.snapshot(1.0).live))

    @router.get(
        "/policy-schema",
        summary="The policy language",
        response_class=Response,
        responses=of_type(
            "The JSON Schema of the policy language.", {"type": "object"}, "application/schema+json"
        ),
    )
    def policy_schema() -> Response:
        """For editors: every key with its type, its range and what it is for."""
        return Response(language, media_type="application/schema+json")

    @router.post(
        "/policies/check",
        summary="Is a policy right?",
        response_model=PolicyCheck,
        responses=refusals(400, 403, 413, 415, 422),
        dependencies=[JSON_BODY],
    )
    def check(asked: PolicyText) -> Response:
        """A text as if it were a file of the folder. Changes nothing, and so needs no token."""
        return reply(policy_service.check(asked.name, asked.text, folder))

    @router.post(
        "/policies/dry-run",
        summary="What a policy would have decided",
        response_model=DryRunResult,
        responses=refusals(400, 403, 404, 413, 415, 422, 503),
        dependencies=[JSON_BODY],
    )
    def dry_run(asked: DryRunRequest) -> Response:
        """On what the history has of the last hours, beside another policy. Changes nothing, and so
        needs no token; one at a time.
        """
        return reply(runs.run(asked))

    return router
