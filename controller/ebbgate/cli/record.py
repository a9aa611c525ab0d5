# SPDX-License-Identifier: GPL-2.0-only
"""`record`: a volume's load as JSON lines on stdout, to be replayed. I/O: runs its own probe."""

from __future__ import annotations

import json
import sys

import click

from ebbgate.cli.context import Context, json_option
from ebbgate.errors import Unavailable, UsageError
from ebbgate.probes.capture import Capture, Captured, Wishes
from ebbgate.probes.topology import find
from ebbgate.units import parse_duration_ns


def _duration(_ctx: click.Context, param: click.Parameter, value: str) -> int:
    try:
        return parse_duration_ns(value)
    except ValueError as error:
        raise UsageError(f"--{param.name}: {error}") from error


@click.command()
@click.argument("device")
@click.option("--seconds", type=click.FloatRange(0.1), help="Stop by itself; else Ctrl-C does.")
@click.option("--wait", default="300ms", callback=_duration, help="Quiet time before an idle edge.")
@click.option(
    "--pace", default="0ms", callback=_duration, help="Period of queue samples; 0ms: none."
)
@json_option
@click.pass_obj
def record(context: Context, device: str, seconds: float | None, wait: int, pace: int) -> None:
    """Keep what the probe and sysfs see of DEVICE: ebbgate record bcache0 > monday.jsonl

    It runs a probe of its own, beside that of the daemon, and touches no knob.
    """
    context.need_root("ebbgate record")
    volume = find(context.sysfs, device)
    if sys.stdout.isatty():
        print("recording to the terminal; Ctrl-C ends it", file=sys.stderr)
    capture = Capture(context.config.probe_path, context.sysfs, volume, sys.stdout.buffer)
    _report(capture.run(Wishes(wait, pace), seconds), context.json)


def _report(captured: Captured, as_json: bool) -> None:
    """On stderr, since stdout is the recording itself."""
    if as_json:
        summary = {"records": captured.records, "ticks": captured.ticks, "ended": captured.ended}
        print(json.dumps(summary), file=sys.stderr)
    else:
        print(f"{captured.records} records, {captured.ticks} ticks", file=sys.stderr)
    if captured.ended:
        raise Unavailable(captured.ended, "what was recorded until then is complete")
