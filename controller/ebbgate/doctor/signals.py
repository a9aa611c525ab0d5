# SPDX-License-Identifier: GPL-2.0-only
"""Finds out which signals this kernel supports. I/O: runs `ebbgate-probe --check`."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import Unavailable
from ebbgate.kernel.run import run
from ebbgate.model.records import PROTOCOL_VERSION

# Loading and verifying all programs takes a second. The bcc probe compiles them first, which took
# more than a minute in the lab's emulator beside a daemon.
_CHECK_TIMEOUT_S: Final = 180.0
_MEANING: Final = {
    0: "ok",
    64: "the probe does not know --check: install probe and controller of the same release",
    69: "the kernel lacks a feature that the probe needs",
    70: "the probe failed: internal error, please report it",
    77: "not allowed to load BPF programs: run this as root",
}


@dataclass(frozen=True, slots=True)
class ProbeCheck:
    """Result of the check; `kind` and `signals` are empty if the probe did not start.

    `kind`: `ebpf`, or `bcc` without BTF. `signals`: name -> `ok` or why not.
    """

    program: str
    ok: bool
    text: str
    version: str = ""
    kind: str = ""
    exit_code: int | None = None
    signals: dict[str, str] = field(default_factory=dict)


def check(program: Path) -> ProbeCheck:
    """Load the probe's programs once and unload them. Never raises."""
    try:
        done = run([str(program), "--check"], timeout_s=_CHECK_TIMEOUT_S, check=False)
    except Unavailable as error:
        return ProbeCheck(str(program), ok=False, text=_not_run(program, error))
    hello = _hello(done.stdout)
    reason = _reason(done.stderr) or _MEANING.get(done.exit_code, f"exit code {done.exit_code}")
    ok = done.exit_code == 0 and hello is not None
    if hello is None:
        text = reason if done.exit_code else "the probe printed no valid record"
        return ProbeCheck(str(program), ok=False, text=text, exit_code=done.exit_code)
    if hello.get("protocol") != PROTOCOL_VERSION:
        ok = False
        reason = (
            f"the probe speaks protocol {hello.get('protocol')}, this controller "
            f"{PROTOCOL_VERSION}: install both from the same release"
        )
    return ProbeCheck(
        program=str(program),
        ok=ok,
        text="ok" if ok else reason,
        version=str(hello.get("version", "")),
        kind=str(hello.get("probe", "")),
        signals={str(name): str(word) for name, word in hello.get("signals", {}).items()},
        exit_code=done.exit_code,
    )


def _not_run(program: Path, error: Unavailable) -> str:
    if not program.is_file():
        return f"there is no {program}: install it, or run make probe"
    if not os.access(program, os.X_OK):
        return f"{program} is not executable"
    return error.message


def _hello(stdout: str) -> dict[str, Any] | None:
    for line in stdout.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("t") == "hello":
            return record
    return None


def _reason(stderr: str) -> str:
    """Return the last line of the probe's errors without its name."""
    lines = stderr.strip().splitlines()
    return re.sub(r"^ebbgate-probe(-bcc)?: ", "", lines[-1]) if lines else ""
