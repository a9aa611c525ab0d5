# SPDX-License-Identifier: GPL-2.0-only
"""The fixed reasons of knob writes: those that no proposal of a strategy words. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from ebbgate.policy.defaults import IDLE_DESTAGE, STREAM_BYPASS
from ebbgate.signals.totals import MANUAL


class Source(NamedTuple):
    """The strategy or other actor behind a write, and its reason."""

    actor: str
    reason: str


GARBAGE: Final = Source(IDLE_DESTAGE, "drained buckets still count as used")
GATE_MANUAL: Final = Source(IDLE_DESTAGE, "a knob of the gate is manual")
NO_GATE: Final = Source(IDLE_DESTAGE, "no strategy decides about the gate")
NO_STREAMS: Final = Source(STREAM_BYPASS, "no strategy decides about streams")
JITTER: Final = Source(STREAM_BYPASS, "jitter of the cache device is not congestion")
BY_POLICY: Final = Source("policy", "backing_scheduler of the policy")
FOUND: Final = Source(MANUAL, "found when it was read")
RELEASE_FAILED: Final = "it failed before"
"""Why originals are restored again."""
