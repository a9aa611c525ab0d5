# SPDX-License-Identifier: GPL-2.0-only
"""Loop devices of the machine on which this runs. I/O: losetup, as root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def loop_device(image: Path) -> Iterator[Path]:
    """Attach a file for as long as the context lasts; skips the test where that cannot be done."""
    done = subprocess.run(
        ["losetup", "-f", "--show", str(image)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("needs a loop device")
    device = Path(done.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run(["losetup", "-d", str(device)], check=True)
