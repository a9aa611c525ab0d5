# SPDX-License-Identifier: GPL-2.0-only
"""`--check` of the probe, and all its failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbgate.doctor.signals import check
from ebbgate.model.records import PROTOCOL_VERSION

HELLO = {
    "t": "hello",
    "ns": 1,
    "protocol": PROTOCOL_VERSION,
    "probe": "ebpf",
    "version": "0.1.0",
    "signals": {"volume": "ok", "path": "missing: the bcache module is not loaded"},
}


def program(tmp_path: Path, stdout: str, *, stderr: str = "", code: int = 0) -> Path:
    path = tmp_path / "ebbgate-probe"
    path.write_text(
        f"#!/bin/sh\n[ \"$1\" = --check ] || exit 64\ncat <<'E'\n{stdout}\nE\n"
        f"echo '{stderr}' >&2\nexit {code}\n"
    )
    path.chmod(0o755)
    return path


def test_signals_are_those_of_the_probe(tmp_path: Path) -> None:
    found = check(program(tmp_path, json.dumps(HELLO)))
    assert (found.ok, found.text, found.version) == (True, "ok", "0.1.0")
    assert found.signals["path"] == "missing: the bcache module is not loaded"


def test_other_lines_are_passed_over(tmp_path: Path) -> None:
    out = f'nonsense\n{{"t":"warn"}}\n[1]\n{json.dumps(HELLO)}'
    assert check(program(tmp_path, out)).ok


@pytest.mark.parametrize(
    ("code", "stderr", "text"),
    [
        (
            69,
            "ebbgate-probe: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)",
            "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)",
        ),
        (
            69,
            "ebbgate-probe-bcc: bcc needs the headers of this kernel",
            "bcc needs the headers of this kernel",
        ),
        (77, "", "not allowed to load BPF programs: run this as root"),
        (
            64,
            "",
            "the probe does not know --check: install probe and controller of the same release",
        ),
        (70, "", "the probe failed: internal error, please report it"),
        (3, "", "exit code 3"),
    ],
)
def test_a_probe_that_cannot_start_has_a_reason(
    tmp_path: Path, code: int, stderr: str, text: str
) -> None:
    found = check(program(tmp_path, "", stderr=stderr, code=code))
    assert (found.ok, found.text, found.exit_code) == (False, text, code)


@pytest.mark.parametrize(
    ("stdout", "text"),
    [
        (json.dumps({**HELLO, "protocol": 99}), "the probe speaks protocol 99, this controller 1"),
        ("", "the probe printed no valid record"),
    ],
)
def test_a_probe_without_a_valid_record_is_refused(tmp_path: Path, stdout: str, text: str) -> None:
    found = check(program(tmp_path, stdout))
    assert not found.ok
    assert found.text.startswith(text)


def test_a_missing_probe_has_a_next_step(tmp_path: Path) -> None:
    found = check(tmp_path / "none")
    assert not found.ok
    assert "install it, or run make probe" in found.text


def test_a_probe_that_is_not_executable_is_reported(tmp_path: Path) -> None:
    path = program(tmp_path, "")
    path.chmod(0o644)
    assert "not executable" in check(path).text
