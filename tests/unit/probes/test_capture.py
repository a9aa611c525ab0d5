# SPDX-License-Identifier: GPL-2.0-only
"""A recording holds every line of the probe and what sysfs said beside it, however it ends."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from ebbgate.errors import PermissionDenied, Unavailable
from ebbgate.model.records import Tick
from ebbgate.probes.capture import Capture, Captured, CaptureSettings
from ebbgate.probes.recording import RecordingHeader, SysfsSnapshot, read_recording
from ebbgate.units import MIB, NS_PER_MS
from tests.builders import probe_tick, volume
from tests.fake_sysfs import fake_bcache

# A probe that echoes its commands (in `warn` records) and ticks until `quit`.
SCRIPT = """#!/usr/bin/python3
import json, os, select, sys
print(json.dumps({{"t": "hello", "ns": 1, "protocol": 1, "probe": "ebpf", "version": "0",
                  "boot_id": "", "signals": {{}}}}), flush=True)
{before}
ns = 0
while True:
    # Not readline: what it buffers ahead, select does not see.
    told = os.read(0, 4096).decode() if select.select([0], [], [], 0.02)[0] else None
    for line in () if told is None else told.splitlines() or ("",):
        if line in ("quit", ""):
            print(json.dumps({{"t": "bye", "ns": ns, "why": line}}), flush=True)
            sys.exit(0)
        print(json.dumps({{"t": "warn", "ns": ns, "what": line, "n": 1, "text": ""}}), flush=True)
        if line.startswith("track") and {follows}:
            print('{{"t":"track","ns":1,"vol":"bcache0"}}', flush=True)
    ns += 250000000
    print(json.dumps({{**{tick}, "ns": ns}}), flush=True)
"""


def probe(tmp_path: Path, *, before: str = "", follows: bool = True) -> Path:
    path = tmp_path / "ebbgate-probe"
    path.write_text(SCRIPT.format(before=before, follows=follows, tick=probe_tick()))
    path.chmod(0o755)
    return path


def capture(
    tmp_path: Path, program: Path, seconds: float | None = 0.5, out: io.BytesIO | None = None
) -> tuple[Captured, list[dict[str, Any]], bytes]:
    out = io.BytesIO() if out is None else out
    fake = fake_bcache(tmp_path / "sys")
    settings = CaptureSettings(wait_ns=200 * NS_PER_MS, pace_ns=10 * NS_PER_MS)
    captured = Capture(program, fake.sysfs, volume(), out).run(settings, seconds)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    return captured, lines, out.getvalue()


def test_the_probe_gets_the_volume_and_the_settings(tmp_path: Path) -> None:
    _, lines, _ = capture(tmp_path, probe(tmp_path))
    told = [line["what"] for line in lines if line["t"] == "warn"]
    assert told == [
        "track bcache0 kind=bcache volume=252:0 cache=254:0 backing=254:0",
        "wait bcache0 200000000",
        "pace bcache0 10000000",
    ]


def test_every_line_is_recorded_with_the_state_at_each_tick(tmp_path: Path) -> None:
    captured, lines, _ = capture(tmp_path, probe(tmp_path))
    kinds = [line["t"] for line in lines]
    assert (kinds[0], kinds[1], kinds[-1]) == ("origin", "hello", "bye")
    # One more look at sysfs than ticks: where the recording begins.
    assert captured.ticks == kinds.count("tick") == kinds.count("sysfs") - 1 > 3
    assert captured.ended == ""
    assert captured.records == len(lines) - 1 - kinds.count("sysfs")


def test_a_recording_can_be_read_back(tmp_path: Path) -> None:
    captured, _, raw = capture(tmp_path, probe(tmp_path))
    records = list(read_recording(raw.decode().splitlines()))
    (origin,) = (each for each in records if isinstance(each, RecordingHeader))
    assert "bcache0 (bcache, 2 GiB, vda + vdb)" in origin.text
    seen = [each for each in records if isinstance(each, SysfsSnapshot)]
    assert len(seen) - 1 == sum(isinstance(each, Tick) for each in records) == captured.ticks
    assert seen[0].state.dirty_bytes == 420 * MIB


def test_a_vanished_volume_ends_the_recording(tmp_path: Path) -> None:
    gone = 'print(\'{"t":"untrack","ns":1,"vol":"bcache0","why":"vanished"}\', flush=True)'
    captured, lines, _ = capture(tmp_path, probe(tmp_path, before=gone), seconds=10)
    assert captured.ended == "bcache0 vanished"
    assert lines[-1]["t"] == "bye"


def test_a_probe_that_never_follows_the_volume_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbgate.probes.capture._START_TIMEOUT_S", 0.3)
    captured, _, _ = capture(tmp_path, probe(tmp_path, follows=False), seconds=10)
    assert captured.ended == "the probe never followed bcache0"


def test_a_refused_command_is_reported(tmp_path: Path) -> None:
    refusal = 'print(\'{"t":"error","ns":1,"text":"no such device","cmd":"track"}\', flush=True)'
    captured, _, _ = capture(tmp_path, probe(tmp_path, before=refusal), seconds=10)
    assert captured.ended == "the probe refused: no such device"


def test_the_first_refusal_is_reported(tmp_path: Path) -> None:
    """Where `track` is refused, the commands after it are refused as well."""
    text = "\\n".join(
        json.dumps({"t": "error", "ns": 1, "text": why, "cmd": ""})
        for why in ("no such device", "not tracked", "not tracked")
    )
    captured, _, _ = capture(tmp_path, probe(tmp_path, before=f"print('{text}', flush=True)"))
    assert captured.ended == "the probe refused: no such device"


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (77, PermissionDenied, "may not load BPF programs"),
        (69, Unavailable, "exit code 69"),
        (70, Unavailable, "exit code 70"),
    ],
)
def test_a_probe_that_fails_is_an_error(
    tmp_path: Path, code: int, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        capture(tmp_path, probe(tmp_path, before=f"sys.exit({code})"), seconds=10)


def test_a_missing_probe_is_an_error_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"cannot be started[\s\S]*make probe"):
        capture(tmp_path, tmp_path / "none")


def test_a_damaged_line_is_recorded_unchanged(tmp_path: Path) -> None:
    out = io.BytesIO()
    program = probe(tmp_path, before='print("{half", flush=True)')
    fake = fake_bcache(tmp_path / "sys")
    Capture(program, fake.sysfs, volume(), out).run(CaptureSettings(1), 0.2)
    assert b"\n{half\n" in out.getvalue()


class InterruptedFile(io.BytesIO):
    """Raises KeyboardInterrupt at the fifth line of the probe."""

    flushes = 0

    def flush(self) -> None:
        self.flushes += 1
        if self.flushes == 5:
            raise KeyboardInterrupt


def test_an_interrupt_ends_the_recording_cleanly(tmp_path: Path) -> None:
    captured, lines, _ = capture(tmp_path, probe(tmp_path), seconds=None, out=InterruptedFile())
    assert (lines[-1]["t"], captured.ended) == ("bye", "")
