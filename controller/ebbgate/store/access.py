# SPDX-License-Identifier: GPL-2.0-only
"""Sets who may read the databases: root and the group of `ebbgate-web`. I/O: modes of files.

The group may read the history and write nothing. Only root may open the journal of originals and
the overrides. SQLite gives its log files the mode and owner of the database.
"""

from __future__ import annotations

import grp
import logging
import os
import stat
from pathlib import Path
from typing import Final

from ebbgate.errors import Unavailable
from ebbgate.log_messages.history import ACCESS_NOT_GIVEN

_LOG = logging.getLogger(__name__)
GROUP: Final = "ebbgate"
READ_MODE: Final = 0o640
"""For files that the group may read."""
ROOT_MODE: Final = 0o600
"""For files that only root may open."""
_FOLDER_MODE: Final = 0o2750
"""New files inherit the group of the folder."""
_RUNTIME_FOLDER_MODE: Final = 0o755


def group_id() -> int | None:
    """Return the group of `ebbgate-web`; None where it is not installed."""
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return None


def make_folder(path: Path) -> None:
    """Make the folder of the databases if it is missing. Raises OSError.

    An existing one keeps the owner and mode that systemd or `make install` gave it.
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
        _LOG.warning(ACCESS_NOT_GIVEN, path, error.strerror)


def make_runtime_folder(path: Path) -> None:
    """Make the folder of the control socket and the lock if it is missing. Raises OSError.

    Only root may write to it; everybody may enter, and its files have their own modes.
    """
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(_RUNTIME_FOLDER_MODE)


def state_folder_refused(path: Path, error: OSError) -> Unavailable:
    """Return what to do where `make_folder` fails; the command gives what that would give."""
    if group_id() is None:
        return _refused(path, error, "-m 750", f"ReadWritePaths={path}")
    return _refused(path, error, f"-m {_FOLDER_MODE:o} -g {GROUP}", f"ReadWritePaths={path}")


def runtime_folder_refused(path: Path, error: OSError) -> Unavailable:
    """Return what to do where `make_runtime_folder` fails."""
    # A boot empties /run: there the units have to make it.
    return _refused(path, error, f"-m {_RUNTIME_FOLDER_MODE:o}", f"RuntimeDirectory={path.name}")


def _refused(path: Path, error: OSError, access: str, setting: str) -> Unavailable:
    """Name the next step; the units may write to few places.

    `access`: options of install. `setting`: of the units.
    """
    return Unavailable(
        f"the folder {path} cannot be made: {error.strerror}",
        f"make it by hand (install -d {access} {path}) and let the units write to it: `systemctl "
        f"edit ebbgated ebbgate-restore`, in [Service] {setting}",
    )


def make_file(path: Path, mode: int) -> None:
    """Make the empty file of a database if it is missing, with this mode whatever the umask is.

    An existing file of ours loses the rights that `mode` does not have. Raises OSError.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, mode)
    try:
        found = os.fstat(handle)
        wanted = mode if not found.st_size else stat.S_IMODE(found.st_mode) & mode
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != wanted:
            os.fchmod(handle, wanted)
    finally:
        os.close(handle)
