# SPDX-License-Identifier: GPL-2.0-only
"""What the probe counted over a run of fio, held against what fio says it did.

I/O: through the stack's Session and the probe.
"""

from __future__ import annotations

from tests.lab import fio
from tests.lab.probe import GuestProbe, tracked_as
from tests.lab.stack import Stack
from tests.probe_records import Difference

PATHS = {"read": ("hit", "miss", "bypass"), "write": ("writeback", "writethrough", "bypass")}


def job(stack: Stack, rw: str, bs: str = "4k", **options: str | int) -> fio.Job:
    """A job on the stack's volume."""
    return fio.Job(stack.device, rw, bs, options=options)


def gained(
    probe: GuestProbe, stack: Stack, *jobs: fio.Job, seed: int
) -> tuple[Difference, fio.FioResult]:
    """Run jobs; what the probe's counters gained by them."""
    before = probe.tick(tracked_as(stack))
    result = fio.run(stack.session, *jobs, seed=seed)
    return Difference(before, probe.tick(tracked_as(stack))), result


def assert_equal_to_fio(gain: Difference, result: fio.FioResult) -> None:
    """Requests and bytes are fio's to the digit, and each took one path and has its latency."""
    for way in ("read", "write"):
        assert gain("fg", way, "ios") == sum(getattr(done, way).ios for done in result.jobs)
        assert gain("fg", way, "bytes") == sum(getattr(done, way).bytes for done in result.jobs)
        assert sum(gain.histogram("runs", way)) == gain("fg", way, "bytes")
        for what in ("ios", "bytes"):
            taken = [gain("path", way, path, what) for path in PATHS[way]]
            assert sum(taken) == gain("fg", way, what), (way, what, taken)
        for path in PATHS[way]:
            assert sum(gain.histogram("path", way, path, "lat")) == gain("path", way, path, "ios")
