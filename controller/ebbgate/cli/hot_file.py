# SPDX-License-Identifier: GPL-2.0-only
"""Files of `ebbgate warm --save`: which parts of a volume were hot. I/O: such files.

Lines of JSON. The first describes the volume: `ebbgate_hot_set` (1), `volume`, `uuid`,
`size_bytes`, `chunk_bytes`, `observed_ns`, `saved_unix_ns`. Each further line is a range,
`from_bytes` and `to_bytes`, hottest first.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ebbgate.errors import ActuationError, NotFound, PermissionDenied, UsageError
from ebbgate.intents.protocol import NAME_LENGTH_MAX
from ebbgate.model.hot_set import CHUNKS_MAX, ChunkRange, HotSet, check_ranges
from ebbgate.text import clean_text
from ebbgate.units import INT64_MAX, MIB

VERSION: Final = 1
_FILE_BYTES_MAX: Final = 4 * MIB
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""The file system has no hard links: vfat and exFAT, CIFS, some of FUSE."""
_HINT: Final = "use a file of `ebbgate warm --save`"


@dataclass(frozen=True, slots=True)
class SavedHotSet:
    """The content of a file. `uuid`: empty for a volume that has none."""

    volume: str
    uuid: str
    size_bytes: int
    saved_unix_ns: int
    hot: HotSet


def save(path: Path, found: SavedHotSet, *, force: bool) -> None:
    """Write a new file at once or not at all; `force`: replace one.

    Raises UsageError, PermissionDenied, and ActuationError for other reasons.
    """
    if not path.name:
        raise UsageError(f"{path} is a folder", "give the path of a new file")
    partial = path.with_name(f".{path.name[:64]}.{secrets.token_hex(4)}")
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is no regular file", "give the path of a new file")
        with partial.open("x", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in _lines(found))
            file.flush()
            os.fsync(file.fileno())
        if force:
            partial.replace(path)
        else:
            _put(partial, path)
    except FileExistsError as error:
        raise UsageError(f"{path} exists", "to replace it: --force") from error
    except PermissionError as error:
        raise PermissionDenied(f"{path} cannot be written", "choose another folder") from error
    except OSError as error:
        raise ActuationError(
            f"{path} cannot be written: {error.strerror}", "choose another folder"
        ) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def _put(partial: Path, path: Path) -> None:
    """Give a complete file a name that no other has. Raises OSError."""
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        path.open("x").close()
        partial.replace(path)


def _lines(found: SavedHotSet) -> list[dict[str, Any]]:
    chunk = found.hot.chunk_bytes
    head = {
        "ebbgate_hot_set": VERSION,
        "volume": found.volume,
        "uuid": found.uuid,
        "size_bytes": found.size_bytes,
        "chunk_bytes": chunk,
        "observed_ns": found.hot.observed_ns,
        "saved_unix_ns": found.saved_unix_ns,
    }
    return [
        head,
        *({"from_bytes": e.first * chunk, "to_bytes": e.end * chunk} for e in found.hot.ranges),
    ]


def load(path: Path) -> SavedHotSet:
    """Read a file. Raises NotFound, PermissionDenied, and UsageError with the line of an error."""
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise NotFound(f"{path}: no such file", _HINT) from error
    except PermissionError as error:
        raise PermissionDenied(f"no access to {path}", "run this as root") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", _HINT) from error
    lines = data.splitlines()
    if len(data) > _FILE_BYTES_MAX or len(lines) > CHUNKS_MAX + 1:
        raise UsageError(f"{path} is too long for a hot set", _HINT)
    return _parsed(path, lines)


def _parsed(path: Path, lines: Sequence[bytes]) -> SavedHotSet:
    """Raises UsageError."""
    number, found = 1, []
    try:
        head = _head(_document(lines[0] if lines else b""))
        for line in lines[1:]:
            number += 1
            found.append(_range(_document(line), head))
        check_ranges(found, head.hot.chunk_bytes)
    except ValueError as error:
        raise UsageError(f"{path}:{number}: {error}", _HINT) from error
    return replace(head, hot=replace(head.hot, ranges=tuple(found)))


def _document(line: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not a line of JSON") from error
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


def _head(document: Mapping[str, Any]) -> SavedHotSet:
    version = document.get("ebbgate_hot_set")
    if version != VERSION or isinstance(version, bool):
        what = "is missing" if version is None else "is not known here"
        raise ValueError(f"ebbgate_hot_set: the version {what}; this ebbgate has {VERSION}")
    found = SavedHotSet(
        _name(document, "volume"),
        _name(document, "uuid", empty=True),
        _number(document, "size_bytes"),
        _number(document, "saved_unix_ns"),
        HotSet(_number(document, "chunk_bytes"), (), _number(document, "observed_ns")),
    )
    check_ranges([ChunkRange(0)], found.hot.chunk_bytes)
    return found


def _range(document: Mapping[str, Any], head: SavedHotSet) -> ChunkRange:
    start, end, chunk = (
        _number(document, "from_bytes"),
        _number(document, "to_bytes"),
        head.hot.chunk_bytes,
    )
    if start % chunk or end % chunk:
        raise ValueError(f"from_bytes and to_bytes are not multiples of {chunk}")
    if end <= start:
        raise ValueError("to_bytes is not above from_bytes")
    if end - chunk >= head.size_bytes:
        raise ValueError(f"to_bytes is beyond the volume, which has {head.size_bytes}")
    return ChunkRange(start // chunk, (end - start) // chunk)


def _number(document: Mapping[str, Any], key: str) -> int:
    value = document.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INT64_MAX:
        raise ValueError(f"{key}: must be a whole number")
    return value


def _name(document: Mapping[str, Any], key: str, *, empty: bool = False) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not (value or empty) or len(value) > NAME_LENGTH_MAX:
        raise ValueError(f"{key}: must be a text of at most {NAME_LENGTH_MAX} characters")
    if clean_text(value) != value:
        raise ValueError(f"{key}: has an invalid character")
    return value
