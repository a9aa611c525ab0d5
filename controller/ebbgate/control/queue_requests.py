# SPDX-License-Identifier: GPL-2.0-only
"""Requests what the queues of a volume's disks are to be like outside of gaps. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from ebbgate.actuators.gate_worker import Job
from ebbgate.actuators.reason import Reason
from ebbgate.control import knob_jobs
from ebbgate.control.applied import Applied
from ebbgate.knobs.catalog import NR_REQUESTS, SCHEDULER, WBT
from ebbgate.policy.other_knobs import BY_POLICY, NOT_THROTTLED, SORTED, OtherKnobs

Submit = Callable[[str, Job], None]


def request_queues(
    applied: Applied,
    wanted: OtherKnobs,
    decision: int,
    is_due: Callable[[str], bool],
    submit: Submit,
) -> None:
    """Submit the jobs whose knobs are wanted otherwise than they were requested last.

    `is_due`: whether a job has failed and is to be repeated now.
    """
    switched = wanted.backing_scheduler != applied.scheduler or is_due(SCHEDULER)
    if switched:
        # No other scheduler, and none at all, has to hold as many.
        _request_length(applied, 0, decision, submit)
        applied.scheduler = wanted.backing_scheduler
        job = knob_jobs.scheduler_job(wanted.backing_scheduler, Reason(*BY_POLICY, decision))
        submit(SCHEDULER, job)
    _request_length(applied, wanted.nr_requests, decision, submit, again=is_due(NR_REQUESTS))
    # The kernel turns the throttling off with bfq, and on again with another scheduler.
    if switched or wanted.wbt_lat_usec != applied.wbt_lat_usec or is_due(WBT):
        applied.wbt_lat_usec = wanted.wbt_lat_usec
        reason = Reason(*NOT_THROTTLED, decision)
        submit(WBT, knob_jobs.wbt_job(wanted.wbt_lat_usec, reason))


def _request_length(
    applied: Applied, number: int, decision: int, submit: Submit, *, again: bool = False
) -> None:
    if again or number != applied.nr_requests:
        applied.nr_requests = number
        submit(NR_REQUESTS, knob_jobs.nr_requests_job(number, Reason(*SORTED, decision)))
