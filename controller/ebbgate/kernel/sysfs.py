# SPDX-License-Identifier: GPL-2.0-only
"""Reads and writes sysfs, under a root that a test can replace. I/O: sysfs, device-mapper.

Paths are those of a real machine (`/sys/block/bcache0/bcache/state`), so that they can be shown,
kept in the journal and pasted; `root` is where the tree really is. A setting of device-mapper has
a path like a file: `dm:REF/migration_threshold` (REF: see `kernel.device_mapper`).
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ebbgate.errors import Unavailable
from ebbgate.kernel.device_mapper import DeviceMapper, DmDevice

CANONICAL_ROOT = Path("/sys")
# The kernel returns at most one page for an attribute.
_ATTRIBUTE_BYTES_MAX = 4096
# What vanished is not there the next time; something else may vanish then.
_SEARCHES = 3
BLOCK = CANONICAL_ROOT / "block"
CLASS_BLOCK = CANONICAL_ROOT / "class/block"
DM_PREFIX = "dm:"


@dataclass(frozen=True, slots=True)
class Sysfs:
    """A sysfs tree and a device-mapper: the machine's own, or those of a test."""

    root: Path = CANONICAL_ROOT
    dm: DeviceMapper = field(default_factory=DeviceMapper, compare=False)

    def locate(self, path: Path | str) -> Path:
        """Return where `path` (below `/sys`) is in this tree. Raises ValueError for other paths."""
        return self.root / Path(path).relative_to(CANONICAL_ROOT)

    def read_text(self, path: Path | str) -> str | None:
        """Return the attribute without its line end; None where it is missing or unreadable.

        Both are normal: a kernel may lack any file, a device may vanish between two reads.
        """
        if str(path).startswith(DM_PREFIX):
            return self.dm.setting(*_message(path))
        try:
            return self._read(path)
        except OSError:
            return None

    def read(self, path: Path | str) -> str:
        """Return the attribute without its line end. Raises OSError with the kernel's own errno;
        `is_gone` tells a missing file from one that cannot be read.
        """
        if str(path).startswith(DM_PREFIX):
            try:
                return self.dm.read_setting(*_message(path))
            except Unavailable as error:
                raise OSError(errno.EACCES, error.message) from error
        try:
            return self._read(path)
        except OSError as error:
            if error.errno == errno.ENODEV:
                # The device vanished between open and read: now the open fails, too.
                return self._read(path)
            if is_gone(error) and not (self.root / "block").is_dir():
                raise OSError(errno.EIO, "sysfs is not mounted", str(self.root)) from error
            raise

    def _read(self, path: Path | str) -> str:
        handle = os.open(self._where(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(handle, _ATTRIBUTE_BYTES_MAX).decode(errors="replace").rstrip("\n")
        finally:
            os.close(handle)

    def read_int(self, path: Path | str) -> int | None:
        """Return the attribute as a decimal number; None where it is missing or no number."""
        text = self.read_text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def write_text(self, path: Path | str, value: str) -> None:
        """Write `value` in one system call. Raises OSError with the kernel's own errno.

        Never creates a file: a knob that this kernel lacks is an error.
        """
        if str(path).startswith(DM_PREFIX):
            ref, setting = _message(path)
            try:
                self.dm.store(ref, setting, value)
            except Unavailable as error:
                raise OSError(errno.EACCES, error.message) from error
            return
        handle = os.open(self._where(path), os.O_WRONLY | os.O_CLOEXEC)
        try:
            data = value.encode()
            if os.write(handle, data) != len(data):
                raise OSError(errno.EIO, "the kernel took only a part of the value", str(path))
        finally:
            os.close(handle)

    def exists(self, path: Path | str) -> bool:
        """Return whether the file or folder exists."""
        if str(path).startswith(DM_PREFIX):
            return self.dm.setting(*_message(path)) is not None
        return self.locate(path).exists()

    def inode(self, path: Path | str) -> int | None:
        """Return a folder's inode; it changes when the kernel creates the folder again."""
        try:
            return self.locate(path).stat().st_ino
        except OSError:
            return None

    def inode_of(self, path: Path | str) -> int:
        """Return a folder's inode. Raises OSError where it is missing."""
        return self.locate(path).stat().st_ino

    def dm_device(self, path: Path | str) -> DmDevice:
        """Return the dm device of `dm:REF/SETTING`. Raises OSError: ENXIO where it is gone."""
        try:
            return self.dm.device(_message(path)[0])
        except Unavailable as error:
            raise OSError(errno.EACCES, error.message) from error

    def dm_names(self) -> tuple[str, ...]:
        """Return the name of every dm device. Raises OSError."""
        try:
            return self.dm.names()
        except Unavailable as error:
            raise OSError(errno.EACCES, error.message) from error

    def writable(self, path: Path | str) -> bool:
        """Return whether this process may write the attribute; a value may still be refused."""
        if str(path).startswith(DM_PREFIX):
            return self.dm.present()
        return os.access(self._where(path), os.W_OK)

    def may_be_written(self, path: Path | str) -> bool:
        """Return whether the kernel lets root write the attribute."""
        try:
            return bool(self.locate(path).stat().st_mode & stat.S_IWUSR)
        except OSError:
            return False

    def names(self, folder: Path | str) -> frozenset[str]:
        """Return the names in a folder; none where it is missing."""
        try:
            return frozenset(found.name for found in self.locate(folder).iterdir())
        except OSError:
            return frozenset()

    def glob(self, pattern: str) -> tuple[Path, ...]:
        """Return every matching path below `/sys`, sorted, as on a real machine.

        A folder may vanish while it is searched, which `Path.glob` reports as an error.
        """
        relative = str(Path(pattern).relative_to(CANONICAL_ROOT))
        for _ in range(_SEARCHES):
            with suppress(OSError):
                return tuple(sorted(self._canonical(found) for found in self.root.glob(relative)))
        return ()

    def real(self, path: Path | str) -> Path | None:
        """Return the target of a link, as on a real machine; None where it is broken."""
        try:
            end = self.locate(path).resolve(strict=True)
            return self._canonical(end)
        except (OSError, ValueError):
            return None

    def _where(self, path: Path | str) -> str:
        """A faster `locate`, without a Path, for files that are read many times a second."""
        text = str(path)
        return f"{self.root}{text[4:]}" if text.startswith("/sys/") else str(self.locate(path))

    def _canonical(self, located: Path) -> Path:
        """Invert `locate`; a fake root may itself be reached through a link."""
        root = self.root if located.is_relative_to(self.root) else self.root.resolve()
        return CANONICAL_ROOT / located.relative_to(root)


def is_gone(error: OSError) -> bool:
    """Does the error mean that the device or file is missing?"""
    return error.errno in (errno.ENOENT, errno.ENXIO)


def _message(path: Path | str) -> tuple[str, str]:
    """Split `dm:REF/SETTING` into REF and SETTING."""
    ref, _, setting = str(path).removeprefix(DM_PREFIX).rpartition("/")
    return ref, setting
