# SPDX-License-Identifier: GPL-2.0-only
"""Policies, checks and dry runs. I/O: HTTP, reads policy files and the history."""

from __future__ import annotations

import json

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ebbgate.policy.language.reference import schema
from ebbgate.web import policy_service
from ebbgate.web.models.policies import (
    DryRunRequest,
    DryRunResult,
    Policies,
    PolicyCheck,
    PolicyText,
)
from ebbgate.web.responses import reply
from ebbgate.web.routes.declare import JSON_BODY, of_type, refusals, router
from ebbgate.web.security import client_of
from ebbgate.web.snapshot import Databases


def routes_policies(databases: Databases, dry_runs: policy_service.DryRuns) -> APIRouter:
    """Return the routes."""
    routes = router("policies")
    folder = databases.config.policy_dir
    catalog = policy_service.PolicyCatalog(folder)
    language = json.dumps(schema()).encode()

    @routes.get("/policies", summary="All policies", response_model=Policies)
    def policies() -> Response:
        """The administrator's files, the shipped policies, and what runs for each volume."""
        return reply(catalog.now(databases.snapshot(1.0).live))

    @routes.get(
        "/policy-schema",
        summary="The policy language",
        response_class=Response,
        responses=of_type(
            "The JSON Schema of the policy language.", {"type": "object"}, "application/schema+json"
        ),
    )
    def policy_schema() -> Response:
        """For editors: every key with its type, range and purpose."""
        return Response(language, media_type="application/schema+json")

    @routes.post(
        "/policies/check",
        summary="Check a policy",
        response_model=PolicyCheck,
        responses=refusals(400, 403, 413, 415, 422),
        dependencies=[JSON_BODY],
    )
    def check(request: PolicyText) -> Response:
        """Checks a text as if it were a file in the folder. Changes nothing and needs no token."""
        return reply(policy_service.check(request.name, request.text, folder))

    @routes.post(
        "/policies/dry-run",
        summary="Dry run of a policy",
        response_model=DryRunResult,
        responses=refusals(400, 403, 404, 413, 415, 422, 429, 503),
        dependencies=[JSON_BODY],
    )
    async def dry_run(request: Request, wanted: DryRunRequest) -> Response:
        """Compares a policy with another one on the last hours of the history. Changes nothing and
        needs no token. It takes up to two minutes, and one runs at a time: others wait for their
        turn for about as long, at most two of a client.
        """
        found = await dry_runs.run(wanted, client_of(request.scope))
        return await run_in_threadpool(reply, found)

    return routes
