# SPDX-License-Identifier: GPL-2.0-only
"""Remembers the state folders of daemons, so that a restore finds each journal of originals.

`state_dir` may be changed while knobs are. I/O: one small file in the runtime folder. Like the
values of knobs, it does not survive a reboot.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

_ROOT_ONLY: Final = 0o600


def remember(file: Path, state_dir: Path) -> None:
    """Add a state folder to the file, if it is not there yet. Raises OSError."""
    folder = state_dir.absolute()
    if folder in _listed(file):
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(file, flags, _ROOT_ONLY)
    try:
        # Behind a line that was cut off, too.
        os.write(handle, f"\n{json.dumps(str(folder))}\n".encode())
    finally:
        os.close(handle)


def other_journals(file: Path, journal: Path) -> list[Path]:
    """Return the journals in other folders of the file than that of `journal`."""
    paths = [folder / journal.name for folder in _listed(file)]
    return [path for path in paths if path != journal.absolute() and path.exists()]


def _listed(file: Path) -> list[Path]:
    """Return the folders; a file or a line that cannot be read has none."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [folder for line in lines if (folder := _folder(line)) is not None]


def _folder(line: str) -> Path | None:
    try:
        path = json.loads(line)
    except ValueError:
        return None
    return Path(path) if isinstance(path, str) and path.startswith("/") else None
