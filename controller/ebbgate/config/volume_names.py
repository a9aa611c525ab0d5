# SPDX-License-Identifier: GPL-2.0-only
"""Names of volumes that nothing can have. Pure."""

from __future__ import annotations


def name_fault(name: str) -> tuple[str, str] | None:
    """Return what is wrong with the name of a table `[volume.NAME]`, and the next step."""
    if name.startswith("/"):
        known = name.removeprefix("/dev/").removeprefix("mapper/")
        return "is a path, not a name", f'write [volume."{known}"]'
    if "…" in name:
        return "is cut short", "write it in full; ebbgate status --json has names and uuids"
    return None
