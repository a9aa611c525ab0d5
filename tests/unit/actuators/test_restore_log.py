# SPDX-License-Identifier: GPL-2.0-only
"""What a starting daemon logs of the knobs that an earlier one left."""

from __future__ import annotations

import logging

import pytest

from ebbgate.actuators.restore import log_restored
from ebbgate.model.decision import Action, Outcome, OutcomeKind

WARNING, ERROR = logging.WARNING, logging.ERROR
RESTORED = (WARNING, "restored 2 knobs that an earlier ebbgated had left")
LEFT_ALONE = (WARNING, "bcache0: knob: somebody else has changed it to 25")
NOT_RESTORED = (ERROR, "bcache0: knob: not restored: Input/output error")


def outcome(kind: OutcomeKind, error: str = "") -> Outcome:
    return Outcome(Action("bcache0", "knob", None, "10", "restore", ""), kind, 1, error=error)


CHANGED = outcome(OutcomeKind.CHANGED)
UNCHANGED = outcome(OutcomeKind.UNCHANGED, "it already has its original value")
MANUAL = outcome(OutcomeKind.MANUAL, "somebody else has changed it to 25")
FAILED = outcome(OutcomeKind.FAILED, "Input/output error")


@pytest.mark.parametrize(
    ("outcomes", "logged"),
    [
        ([], []),
        ([UNCHANGED], []),
        ([CHANGED, UNCHANGED, CHANGED], [RESTORED]),
        ([MANUAL], [LEFT_ALONE]),
        ([FAILED], [NOT_RESTORED]),
        ([FAILED, CHANGED, MANUAL, CHANGED], [RESTORED, NOT_RESTORED, LEFT_ALONE]),
    ],
)
def test_each_knob_that_is_not_restored_is_named_and_the_others_are_counted(
    caplog: pytest.LogCaptureFixture,
    outcomes: list[Outcome],
    logged: list[tuple[int, str]],
) -> None:
    log_restored(outcomes)
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == logged
