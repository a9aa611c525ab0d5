# SPDX-License-Identifier: GPL-2.0-only
"""Compares a text with its reviewed golden file. I/O: writes it with EBBGATE_UPDATE_GOLDEN=1."""

from __future__ import annotations

import os
from pathlib import Path

UPDATE = os.environ.get("EBBGATE_UPDATE_GOLDEN", "") not in ("", "0")


def check_golden(golden: Path, text: str, command: str) -> None:
    """Compare the text with the file; `command` writes the file anew."""
    if UPDATE:
        golden.write_text(text)
    assert golden.exists(), f"no golden text yet: {command}, then review it"
    assert text == golden.read_text(), f"review the change, then {command}"
