# SPDX-License-Identifier: GPL-2.0-only
"""A folder of the checkout, copied into the guest's memory under its own path.

I/O: an archive in the share, a tmpfs in the guest.

The checkout is mounted without a cache, so that an edit shows at once. Importing a hundred modules
from there is thousands of round trips to the host and takes twice as long as from memory.
"""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

from tests.lab.session import Session

_UNPACK = """
set -e
mountpoint -q "$0" || mount -t tmpfs tmpfs "$0"
find "$0" -mindepth 1 -delete
tar -C "$0" -xf "$1"
cp "$2" "$0/.mirrored"
"""


def mirror(session: Session, folder: Path) -> None:
    """Have the guest see a copy of `folder`, as it is now, until the next call for it.

    Nothing happens if the guest has this very content already, so a program that runs from
    there is not disturbed. The host's folder has to exist; it is only read.
    """
    digest = _digest(folder)
    if session.read_many([folder / ".mirrored"])[str(folder / ".mirrored")] == digest:
        return
    archive, mark = session.share / "mirror.tar", session.share / "mirror.digest"
    with tarfile.open(archive, "w") as tar:
        tar.add(folder, ".")
    mark.write_text(digest)
    session.check(["bash", "-c", _UNPACK, str(folder), str(archive), str(mark)])
    archive.unlink()
    mark.unlink()


def _digest(folder: Path) -> str:
    """Content and names; times differ between two copies of the same."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
