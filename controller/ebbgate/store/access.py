# SPDX-License-Identifier: GPL-2.0-only
"""Who may read the databases: the group of `ebbgate-web`, and nobody else. I/O: modes of files.

It reads the history and can write nothing. It may not make files in the folder, so
that nothing there is ever owned by it: the daemon has no right to files that are not root's. SQLite
gives its log and its index of that the mode and the owner of the database.
"""

from __future__ import annotations

import grp
import logging
import os
import stat
from pathlib import Path
from typing import Final

_LOG = logging.getLogger(__name__)
GROUP: Final = "ebbgate"
READ_MODE: Final = 0o640
"""Of what the group may read."""
ROOT_MODE: Final = 0o600
"""Of what nobody but root may open."""
_FOLDER_MODE: Final = 0o2750
"""Files of the folder are of its group, whoever makes them."""

_RUNTIME_FOLDER_MODE: Final = 0o755


def group_id() -> int | None:
    """The group of `ebbgate-web`; None where it is not installed."""
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return None


def make_folder(path: Path) -> None:
    """The folder of the databases, where it is not there. One that is there stays as it is: whose
    it is was decided by whoever made it (systemd, `make install`). Raises OSError.
    """
    if path.is_dir():
        return
    path.mkdir(parents=True, exist_ok=True, mode=0o750)
    group = group_id()
    if group is None or os.geteuid() != 0:
        return
    try:
        os.chown(path, -1, group)
        path.chmod(_FOLDER_MODE)
    except OSError as error:
        _LOG.warning("%s: ebbgate-web cannot be let in: %s", path, error.strerror)


def make_runtime_folder(path: Path) -> None:
    """The folder of the control socket and the lock, where it is not there. Only root writes in
    it; everybody may enter, and the modes of the files in it say who may use them. Raises OSError.
    """
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(_RUNTIME_FOLDER_MODE)


def make_file(path: Path, mode: int) -> None:
    """The empty file of a database, where it is not there; its mode whatever the umask is.

    An older file of ours loses the rights that `mode` does not have. Raises OSError.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, mode)
    try:
        found = os.fstat(handle)
        wanted = mode if not found.st_size else stat.S_IMODE(found.st_mode) & mode
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != wanted:
            os.fchmod(handle, wanted)
    finally:
        os.close(handle)
