# SPDX-License-Identifier: GPL-2.0-only
"""Keeps policies in the folder of an administrator: whole or not at all, and the last one beside.

I/O: writes files of one folder (`policies.d`), and none outside it: a name has no slash, and no
link is followed.

    NAME.yaml    what is in force; a crash leaves the old text or the new one, never a part
    NAME.yaml~   what it said before the last save or removal: one version, so it cannot grow
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ebbgate.errors import ActuationError, ConfigError, NotFound, UsageError
from ebbgate.intents.validation import POLICY_NAME
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.problem import Diagnostic
from ebbgate.policy_files import reader
from ebbgate.policy_files.validation import judge, judge_removal

# The web's user reads them; there is no secret in a policy.
_MODE: Final = 0o644
_FOLDER_MODE: Final = 0o755


def path_of(folder: Path, name: str) -> Path:
    """The file of a policy. Raises UsageError for a name that is none."""
    if not POLICY_NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a policy's file", "a-z, 0-9 and -, at most 64")
    return folder / f"{name}.yaml"


def save(folder: Path, name: str, text: str) -> PolicyDocument:
    """Keep a policy; what was there before becomes NAME.yaml~.

    Raises ConfigError with everything that is wrong with it, ActuationError where the folder cannot
    be written; nothing has changed then.
    """
    path = path_of(folder, name)
    _check_room(folder, path, len(text.encode()))
    judged = judge(text, str(path), folder)
    if judged.document is None:
        raise _refused(name, judged.problems, "nothing was written")
    data = text.encode()
    with _open_folder(folder, make=True) as handle:
        new = f".{path.name}.new"
        if _is_there(handle, path) and path.read_bytes() == data:
            # Saved twice: what was before it is worth more than a copy of it.
            return judged.document
        try:
            _write(handle, new, data)
            _keep_former(handle, path)
            os.replace(new, path.name, src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=handle)
            raise
        os.fsync(handle)
    return judged.document


def remove(folder: Path, name: str) -> None:
    """Take a policy away; what it said becomes NAME.yaml~.

    Raises NotFound, ConfigError where another policy uses it, ActuationError.
    """
    path = path_of(folder, name)
    problems = judge_removal(str(path), folder)
    if problems:
        raise _refused(name, problems, "nothing was removed")
    with _open_folder(folder, make=False) as handle:
        if not _is_there(handle, path):
            raise NotFound(f"there is no {path}", "see ebbgate status for the policies in force")
        os.replace(path.name, f"{path.name}~", src_dir_fd=handle, dst_dir_fd=handle)
        os.fsync(handle)


def former(folder: Path, name: str) -> str | None:
    """What the policy said before it was last saved or removed; None where nothing is kept.

    To go back is to save this text.
    """
    path = path_of(folder, name)
    try:
        return path.with_name(f"{path.name}~").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _check_room(folder: Path, path: Path, size_bytes: int) -> None:
    """Raises ConfigError for a policy that is one too many, or too large beside the others."""
    try:
        sizes = {each: each.stat().st_size for each in reader.policy_files(folder)}
    except OSError as error:
        raise ActuationError(f"{folder} cannot be read: {error.strerror}") from error
    reader.check_bounds(folder, {**sizes, path: size_bytes})


def _refused(name: str, problems: tuple[Diagnostic, ...], done: str) -> ConfigError:
    errors = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
    lines = "\n".join(map(str, problems))
    return ConfigError(f"{errors} in {name}; {done}\n{lines}", "see policies/README.md")


@contextmanager
def _open_folder(folder: Path, *, make: bool) -> Iterator[int]:
    """The folder as a handle, through which all is done; what goes wrong names the next step."""
    try:
        if make:
            folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)
    except FileNotFoundError as error:
        raise NotFound(f"there is no {folder}", "no policy was ever kept there") from error
    except OSError as error:
        why = f"{folder} cannot be written: {error.strerror or error}"
        hint = "see that the daemon may write there, and that there is room"
        raise ActuationError(why, hint) from error


def _is_there(handle: int, path: Path) -> bool:
    """Raises ActuationError for what is there and is no plain file."""
    try:
        found = os.stat(path.name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise ActuationError(
            f"{path} is a link or no file, put there by somebody: left alone", "change it by hand"
        )
    return True


def _write(handle: int, name: str, data: bytes) -> None:
    """A new file with its content on the disk; what an end in the middle left is replaced."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=handle)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, _MODE, dir_fd=handle), "wb") as file:
        # Whatever the mask of the daemon is.
        os.fchmod(file.fileno(), _MODE)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _keep_former(handle: int, path: Path) -> None:
    """A second name for what is there, so that it is never away."""
    if not _is_there(handle, path):
        return
    spare = f".{path.name}~.new"
    with suppress(FileNotFoundError):
        os.unlink(spare, dir_fd=handle)
    os.link(path.name, spare, src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
    os.replace(spare, f"{path.name}~", src_dir_fd=handle, dst_dir_fd=handle)
