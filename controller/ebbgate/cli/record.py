# SPDX-License-Identifier: GPL-2.0-only
"""`record`: records a volume's load as JSON lines on stdout. I/O: runs its own probe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Final

import click

from ebbgate.cli.context import Context, Seconds, duration_of, with_context
from ebbgate.errors import Unavailable, UsageError
from ebbgate.probes.capture import Capture, Captured, CaptureSettings
from ebbgate.probes.topology import find
from ebbgate.units import NS_PER_MS, NS_PER_S

# Those of the probe (bpf/command.h).
WAIT_NS_MIN: Final = 1 * NS_PER_MS
WAIT_NS_MAX: Final = 3600 * NS_PER_S
PACE_NS_MIN: Final = 1 * NS_PER_MS
PACE_NS_MAX: Final = 60 * NS_PER_S


def _duration(
    low_ns: int, high_ns: int, allowed: str, *, none: bool = False
) -> Callable[[click.Context, click.Parameter, str], int]:
    """Return the check of an option; `none`: it may be 0."""

    def checked(_ctx: click.Context, param: click.Parameter, value: str) -> int:
        found_ns = duration_of(f"--{param.name}", value)
        if not (low_ns <= found_ns <= high_ns or (none and found_ns == 0)):
            raise UsageError(f"--{param.name}: {value} is out of range", f"allowed: {allowed}")
        return found_ns

    return checked


@click.command()
@click.argument("device")
@click.option(
    "--seconds",
    type=Seconds(0.1, 1e9),
    help="Stop after this time; without it, stop with Ctrl-C.",
)
@click.option(
    "--wait",
    default="300ms",
    callback=_duration(WAIT_NS_MIN, WAIT_NS_MAX, "1ms to 1h"),
    help="Time without I/O after which the volume counts as idle.",
)
@click.option(
    "--pace",
    default="0ms",
    callback=_duration(PACE_NS_MIN, PACE_NS_MAX, "1ms to 60s, and 0ms", none=True),
    help="Time between queue samples; 0ms takes none.",
)
@with_context
def record(context: Context, device: str, seconds: float | None, wait: int, pace: int) -> None:
    """Record the load of DEVICE: ebbgate record bcache0 > monday.jsonl

    It runs its own probe, independent of the daemon, and changes no knob.
    """
    context.need_root("ebbgate record")
    volume = find(context.sysfs, device)
    if sys.stdout.isatty():
        print("recording to the terminal; stop with Ctrl-C", file=sys.stderr)
    capture = Capture(context.config.probe_path, context.sysfs, volume, sys.stdout.buffer)
    _report(capture.run(CaptureSettings(wait, pace), seconds), context.json)


def _report(captured: Captured, as_json: bool) -> None:
    """Print a summary on stderr; stdout is the recording."""
    if as_json:
        summary = {"records": captured.records, "ticks": captured.ticks, "ended": captured.ended}
        print(json.dumps(summary), file=sys.stderr)
    else:
        print(f"{captured.records} records, {captured.ticks} ticks", file=sys.stderr)
    if captured.ended:
        raise Unavailable(captured.ended, "the recording up to this point is complete")
