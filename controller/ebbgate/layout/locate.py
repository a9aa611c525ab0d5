# SPDX-License-Identifier: GPL-2.0-only
"""Finds where files lie on cached volumes. I/O: see `chain`; the clock."""

from __future__ import annotations

import glob
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.errors import EbbgateError, NotFound, Unavailable, UsageError
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.layout.chain import ChainReader
from ebbgate.layout.file_patterns import matches
from ebbgate.layout.guest import GuestLayout, reachable
from ebbgate.layout.images import ImageFormat
from ebbgate.layout.mapping import PIECES_MAX, Layer, LayerKind, Piece, place
from ebbgate.layout.mounts import Mounts
from ebbgate.model.volume import Volume
from ebbgate.probes.topology import discover

FILES_MAX: Final = 100_000
_GUEST_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Located:
    """Where a file or device lies.

    - `layers`: from the top down to volumes and disks.
    - `pieces`: those on cached volumes, by offset; their layer is the volume's kernel name.
    - `left_out`: the rest, each with its reason.
    """

    path: str
    layers: tuple[Layer, ...]
    pieces: tuple[Piece, ...]
    left_out: tuple[Piece, ...]


class Locator:
    """Finds where files lie on the cached volumes of one machine."""

    def __init__(self, sysfs: Sysfs, mounts: Mounts | None = None) -> None:
        self.volumes = {volume.kernel_name: volume for volume in discover(sysfs)}
        titles = {name: volume.title for name, volume in self.volumes.items()}
        self._reader = ChainReader(sysfs, mounts or Mounts(), titles)

    def locate(self, path: Path, image: ImageFormat | None = None) -> Located:
        """Return where a file or block device lies, or the disk in an image of this format.

        Raises EbbgateError with the next step.
        """
        layers = self._reader.read(path, image)
        return self._located(layers, next(iter(layers)))

    def locate_guest(
        self, guest: GuestLayout, path: Path, image: ImageFormat, disk: str = ""
    ) -> Iterator[Located | EbbgateError]:
        """Yield where each file of a guest lies whose disk is in an image, or why it cannot be
        mapped.

        Bounded in time and size, since a guest may say anything. Raises EbbgateError.
        """
        host = self._reader.read(path, image)
        layers = {**guest.on_image(next(iter(host.values())), disk), **host}
        deadline, count = time.monotonic() + _GUEST_S, 0
        for file in guest.files:
            try:
                found = self._located(reachable(layers, file), file)
                count += len(found.pieces) + len(found.left_out)
                yield found
            except EbbgateError as error:
                yield error
            if count > PIECES_MAX or time.monotonic() > deadline:
                raise Unavailable("the guest's files lie in too many pieces", "name fewer files")

    def _located(self, layers: Mapping[str, Layer], top: str) -> Located:
        on_volumes, left_out = [], []
        for piece in place(layers, top):
            why = piece.why or self._not_cached(piece.layer)
            if piece.fatal:
                raise Unavailable(f"the place of {top} cannot be used: {why}", _TRY_AGAIN)
            if why:
                left_out.append(Piece(piece.offset_bytes, piece.length_bytes, "", 0, why))
            else:
                on_volumes.append(piece)
        if left_out and not on_volumes:
            self._raise_nowhere(top, layers.values(), left_out)
        return Located(top, tuple(layers.values()), tuple(on_volumes), tuple(left_out))

    def _not_cached(self, device: str) -> str:
        volume = self.volumes.get(device)
        if volume is None:
            return f"on {device}, which is not cached"
        return "" if volume.cached else f"on {volume.title}, which has no cache attached"

    def _raise_nowhere(self, path: str, layers: Iterable[Layer], left_out: list[Piece]) -> None:
        """Raise where no layer is a cached volume; else the file is only empty."""
        lowest = [layer.name for layer in layers if layer.kind in _LOWEST]
        whys = dict.fromkeys(self._not_cached(name) for name in lowest)
        if not lowest:
            raise Unavailable(f"{path} lies {left_out[0].why}", "warm it by reading the file")
        if all(whys):
            raise NotFound(f"{path} lies {', '.join(whys)}", _known(self.volumes.values()))


_LOWEST: Final = (LayerKind.VOLUME, LayerKind.DISK)
_TRY_AGAIN: Final = "nothing of it is used; run this again later, or warm it by reading the file"


def _known(volumes: Iterable[Volume]) -> str:
    names = ", ".join(volume.title for volume in volumes if volume.cached)
    return f"cached volumes here: {names}" if names else "there is no cached volume here"


def expand(patterns: Sequence[str], deadline_s: float = math.inf) -> Iterator[Path | EbbgateError]:
    """Yield each path, and each file that a pattern (`/srv/db/**/*.ibd`) matches, once.

    An error stands for a pattern that matches nothing (NotFound), or that cannot be used.
    `deadline_s`: for all patterns, on CLOCK_MONOTONIC; each has its share of the time that is left.
    """
    seen: set[Path] = set()
    for number, pattern in enumerate(patterns):
        path = Path(pattern).absolute()
        if glob.has_magic(pattern) and not os.path.lexists(path):
            now_s = time.monotonic()
            try:
                found = _files(path, now_s + (deadline_s - now_s) / (len(patterns) - number + 1))
            except EbbgateError as error:
                yield error
                continue
        else:
            found = [path]
        for each in found:
            if each not in seen:
                seen.add(each)
                yield each


def _files(pattern: Path, until_s: float) -> list[Path]:
    """Return the files that a pattern matches, in order. Raises EbbgateError."""
    found: list[Path] = []
    try:
        with closing(matches(pattern, until_s)) as paths:
            for path in filter(os.path.isfile, paths):
                if len(found) >= FILES_MAX:
                    raise UsageError(f"{pattern} matches more than {FILES_MAX} files", "name fewer")
                found.append(Path(path))
    except MemoryError as error:
        raise UsageError(f"what {pattern} matches takes too much memory", "name fewer") from error
    if not found:
        raise NotFound(f"no file matches {pattern}")
    return sorted(found)
