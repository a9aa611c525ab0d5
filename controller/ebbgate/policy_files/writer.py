# SPDX-License-Identifier: GPL-2.0-only
"""Saves and removes policy files atomically and keeps one former version.

I/O: writes only inside the policy folder: names have no slash, and links are not followed.

    NAME.yaml    the policy; after a crash it has the old or the new text, never a part
    NAME.yaml~   the text before the last save or removal
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ebbgate.errors import ActuationError, ConfigError, NotFound, UsageError
from ebbgate.intents.arguments import POLICY_NAME
from ebbgate.policy.language.diagnostic import Diagnostic
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy_files import reader
from ebbgate.policy_files.validation import check_in_folder, check_removal

# Readable by the web's user; policies have no secrets.
_MODE: Final = 0o644
_FOLDER_MODE: Final = 0o755


def path_of(folder: Path, name: str) -> Path:
    """Return the file of a policy. Raises UsageError for an invalid name."""
    if not POLICY_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid policy name", "use a-z, 0-9 and -, at most 64 of them"
        )
    return folder / f"{name}.yaml"


def save(folder: Path, name: str, text: str) -> PolicyDocument:
    """Save a policy; the former text becomes NAME.yaml~.

    Raises ConfigError with all its problems, and ActuationError if the folder cannot be written;
    then nothing has changed.
    """
    path = path_of(folder, name)
    _check_room(folder, path, len(text.encode()))
    checked = check_in_folder(text, str(path), folder)
    if checked.document is None:
        raise _refused(name, checked.problems, "nothing was written")
    data = text.encode()
    with _open_folder(folder, make=True) as handle:
        new = f".{path.name}.new"
        if _is_there(handle, path) and path.read_bytes() == data:
            # Saved twice: NAME.yaml~ keeps the former text, not a copy of this one.
            return checked.document
        try:
            _write(handle, new, data)
            _keep_former(handle, path)
            os.replace(new, path.name, src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=handle)
            raise
        os.fsync(handle)
    return checked.document


def remove(folder: Path, name: str) -> None:
    """Remove a policy; its text becomes NAME.yaml~.

    Raises NotFound, ConfigError if another policy uses it, and ActuationError.
    """
    path = path_of(folder, name)
    problems = check_removal(str(path), folder)
    if problems:
        raise _refused(name, problems, "nothing was removed")
    with _open_folder(folder, make=False) as handle:
        if not _is_there(handle, path):
            raise NotFound(
                f"there is no policy file {path}", "list the active policies: ebbgate status"
            )
        os.replace(path.name, f"{path.name}~", src_dir_fd=handle, dst_dir_fd=handle)
        os.fsync(handle)


def _check_room(folder: Path, path: Path, size_bytes: int) -> None:
    """Raises ConfigError if the folder would have too many or too large policies."""
    try:
        sizes = {each: each.stat().st_size for each in reader.policy_files(folder)}
    except OSError as error:
        raise ActuationError(
            f"{folder} cannot be read: {error.strerror}", "check its permissions"
        ) from error
    reader.check_bounds(folder, {**sizes, path: size_bytes})


def _refused(name: str, problems: tuple[Diagnostic, ...], done: str) -> ConfigError:
    errors = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
    lines = "\n".join(map(str, problems))
    return ConfigError(f"{errors} in {name}; {done}\n{lines}", "policies/README.md lists every key")


@contextmanager
def _open_folder(folder: Path, *, make: bool) -> Iterator[int]:
    """Open the folder; errors inside the block are raised with the next step."""
    try:
        if make:
            folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)
    except FileNotFoundError as error:
        raise NotFound(f"there is no folder {folder}", "no policy was ever saved there") from error
    except OSError as error:
        why = f"{folder} cannot be written: {error.strerror or error}"
        hint = "check that the daemon may write there and that the disk is not full"
        raise ActuationError(why, hint) from error


def _is_there(handle: int, path: Path) -> bool:
    """Whether the file exists. Raises ActuationError if it is not a plain file."""
    try:
        found = os.stat(path.name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise ActuationError(
            f"{path} is a link or not a plain file: ebbgate leaves it alone", "change it by hand"
        )
    return True


def _write(handle: int, name: str, data: bytes) -> None:
    """Write and sync a new file; one left by a crash is replaced."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=handle)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, _MODE, dir_fd=handle), "wb") as file:
        # Independent of the daemon's umask.
        os.fchmod(file.fileno(), _MODE)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _keep_former(handle: int, path: Path) -> None:
    """Link the present file as the former one, so that it exists at any moment."""
    if not _is_there(handle, path):
        return
    spare = f".{path.name}~.new"
    with suppress(FileNotFoundError):
        os.unlink(spare, dir_fd=handle)
    os.link(path.name, spare, src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
    os.replace(spare, f"{path.name}~", src_dir_fd=handle, dst_dir_fd=handle)
