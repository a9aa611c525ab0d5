# SPDX-License-Identifier: GPL-2.0-only
"""Tells which file system an open file is on, where, and whether its extents can be used.

I/O: /proc, reads only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAPPED: Final = ("ext2", "ext3", "ext4", "xfs")
"""File systems whose extents are places on their one device."""
_ONLY_READ: Final = "only its content can be read: warm it by reading the file"
_REFUSED: Final[Mapping[str, str]] = {
    "zfs": "ZFS has caches of its own (ARC, L2ARC) and no place on a device; it is not supported",
    "overlay": "name the file in the folder below the overlay (upperdir, lowerdir)",
    "btrfs": f"btrfs gives addresses of its own, not of the device; {_ONLY_READ}",
    "tmpfs": "it is in memory",
    "ramfs": "it is in memory",
}
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_POINT: Final = 4
"""The fields of a line: number, parent, device, root, mount point, ..."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system. `point`: the folder or file on which it is mounted."""

    filesystem: str
    point: str = ""

    @property
    def refusal(self) -> str:
        """Why extents on it cannot be used, with the next step; empty where they can."""
        if self.filesystem in MAPPED:
            return ""
        return _REFUSED.get(self.filesystem, f"extents are used on ext4 and XFS; {_ONLY_READ}")


class Mounts:
    """The mounts that this process sees.

    Each is looked for once: the list of a machine with many containers takes some ms to read, and
    there may be 10,000 files. What has the number and the device of a mount is the same file system
    for as long as a search takes.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._self = proc / "self"
        self._known: dict[tuple[str, int], Mount] = {}

    def of(self, handle: int) -> Mount:
        """Return the mount of an open file or folder; empty names where it cannot be read.

        By the mount's number: the device number of a file on btrfs is in no list of mounts, and a
        bind mount has that of the folder which it shows.
        """
        try:
            key = _field(self._self / "fdinfo" / str(handle), "mnt_id:"), os.fstat(handle).st_dev
            if key not in self._known:
                self._known[key] = self._listed(key[0])
        except OSError:
            return Mount("")
        return self._known[key]

    def _listed(self, wanted: str) -> Mount:
        """Return the mount of this number. Raises OSError."""
        text = (self._self / "mountinfo").read_bytes().decode(errors="surrogateescape")
        # A name may have any character but those that the kernel escapes.
        for line in text.split("\n"):
            front, _, back = line.partition(" - ")
            fields = front.split(" ")
            if fields[0] == wanted and len(fields) > _POINT:
                return Mount((back.split() or [""])[0], _unescaped(fields[_POINT]))
        return Mount("")


def _unescaped(text: str) -> str:
    """Return a name as it is: the kernel writes space, tab, newline and backslash in octal."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def _field(path: Path, name: str) -> str:
    words = path.read_text().split()
    return words[words.index(name) + 1] if name in words else ""
