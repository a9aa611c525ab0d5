# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's files, under a root that a test can replace. I/O: sysfs, device-mapper.

Paths are written as on a real machine (`/sys/block/bcache0/bcache/state`), so that they can be
shown, kept in the journal and pasted; `root` says where that tree really is. What device-mapper
takes by message has no file; it is read and written as if it had: `dm:REF/migration_threshold`
(dm.py says what a REF is).
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from ebbgate.errors import Unavailable
from ebbgate.kernel.device_mapper import DeviceMapper, DmDevice

CANONICAL_ROOT = Path("/sys")
# One page is all that the kernel ever hands out for an attribute.
_ATTRIBUTE_BYTES_MAX = 4096
_DM = "dm:"


@dataclass(frozen=True, slots=True)
class Sysfs:
    """A sysfs tree and a device-mapper: the machine's own, or those of a test."""

    root: Path = CANONICAL_ROOT
    dm: DeviceMapper = field(default_factory=DeviceMapper, compare=False)

    def locate(self, path: Path | str) -> Path:
        """Where `path` (below `/sys`) lies in this tree. Raises ValueError for any other path."""
        return self.root / Path(path).relative_to(CANONICAL_ROOT)

    def read_text(self, path: Path | str) -> str | None:
        """The attribute without its line end; None where it is missing, unreadable or gone.

        Any kernel may lack any file, and a device may vanish between two reads: both are normal.
        """
        if str(path).startswith(_DM):
            return self.dm.setting(*_message(path))
        try:
            return self._read(path)
        except OSError:
            return None

    def read(self, path: Path | str) -> str:
        """The attribute without its line end. Raises OSError with the kernel's own errno; `is_gone`
        says which of them mean that there is no such thing, and not that it cannot be asked.
        """
        if str(path).startswith(_DM):
            try:
                return self.dm.read_setting(*_message(path))
            except Unavailable as error:
                raise OSError(errno.EACCES, error.message) from error
        try:
            return self._read(path)
        except OSError as error:
            if error.errno == errno.ENODEV:
                # The device went between the open and the read: now its file is gone, too.
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
        """The attribute as a plain decimal number; None where it is missing or something else."""
        text = self.read_text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def write_text(self, path: Path | str, value: str) -> None:
        """Hand `value` to the kernel in one write. Raises OSError with the kernel's own errno.

        No creation and no truncation: a knob that this kernel lacks is an error, not a new file.
        """
        if str(path).startswith(_DM):
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
                raise OSError(errno.EIO, "the kernel took a part of the value only", str(path))
        finally:
            os.close(handle)

    def exists(self, path: Path | str) -> bool:
        """Whether the file or folder is there now."""
        if str(path).startswith(_DM):
            return self.dm.setting(*_message(path)) is not None
        return self.locate(path).exists()

    def inode(self, path: Path | str) -> int | None:
        """The number of a folder's node: another one once the kernel has made it anew."""
        try:
            return self.locate(path).stat().st_ino
        except OSError:
            return None

    def inode_of(self, path: Path | str) -> int:
        """The same. Raises OSError where there is no such folder."""
        return self.locate(path).stat().st_ino

    def dm_device(self, path: Path | str) -> DmDevice:
        """The mapped device of `dm:REF/SETTING`. Raises OSError: ENXIO where it is gone."""
        try:
            return self.dm.device(_message(path)[0])
        except Unavailable as error:
            raise OSError(errno.EACCES, error.message) from error

    def dm_names(self) -> tuple[str, ...]:
        """Every mapped device. Raises OSError."""
        try:
            return self.dm.names()
        except Unavailable as error:
            raise OSError(errno.EACCES, error.message) from error

    def writable(self, path: Path | str) -> bool:
        """Whether this process may write the attribute; the kernel may still refuse a value."""
        if str(path).startswith(_DM):
            return self.dm.present()
        return os.access(self._where(path), os.W_OK)

    def names(self, folder: Path | str) -> frozenset[str]:
        """What is in a folder; nothing where there is none."""
        try:
            return frozenset(found.name for found in self.locate(folder).iterdir())
        except OSError:
            return frozenset()

    def glob(self, pattern: str) -> tuple[Path, ...]:
        """Every path below `/sys` that matches, sorted, as on a real machine."""
        relative = str(Path(pattern).relative_to(CANONICAL_ROOT))
        return tuple(sorted(self._canonical(found) for found in self.root.glob(relative)))

    def real(self, path: Path | str) -> Path | None:
        """Where a link of the tree ends, as on a real machine; None where it leads nowhere."""
        try:
            end = self.locate(path).resolve(strict=True)
            return self._canonical(end)
        except (OSError, ValueError):
            return None

    def _where(self, path: Path | str) -> str:
        """`locate` for what is read and written dozens of times a second: without a new Path."""
        text = str(path)
        return f"{self.root}{text[4:]}" if text.startswith("/sys/") else str(self.locate(path))

    def _canonical(self, located: Path) -> Path:
        """The inverse of `locate`; a fake root may itself be reached through a link."""
        root = self.root if located.is_relative_to(self.root) else self.root.resolve()
        return CANONICAL_ROOT / located.relative_to(root)


def is_gone(error: OSError) -> bool:
    """Does the kernel say that there is no such device or file? Any other error says nothing."""
    return error.errno in (errno.ENOENT, errno.ENXIO)


def _message(path: Path | str) -> tuple[str, str]:
    """Device and setting of `dm:REF/SETTING`."""
    ref, _, setting = str(path).removeprefix(_DM).rpartition("/")
    return ref, setting
