# SPDX-License-Identifier: GPL-2.0-only
"""Reads a table of device-mapper as segments. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from ebbgate.kernel.device_mapper import Target
from ebbgate.layout.mapping import Below, Segment
from ebbgate.units import sectors_to_bytes

DeviceName = Callable[[str], str]
"""Returns the kernel name of a device number (`253:1`)."""
_CRYPT_WORDS: Final = 5
_CRYPT_KEY: Final = 1
_MAPPED: Final = ("linear", "snapshot-origin", "striped")
"""Targets whose parameters are places, besides dm-crypt's."""


def segments(name: str, table: Iterable[Target], device: DeviceName) -> tuple[Segment, ...]:
    """Return the segments of the device that people call `name`."""
    return tuple(_segment(name, target, device) for target in table)


def without_secrets(target: Target) -> Target:
    """Return a line of a table with what `segments` needs: without keys of dm-crypt."""
    if target.kind in _MAPPED:
        return target
    words = target.params.split()
    if target.kind != "crypt" or len(words) < _CRYPT_WORDS:
        return replace(target, params="")
    words[_CRYPT_KEY] = "-"
    return replace(target, params=" ".join(words[:_CRYPT_WORDS]))


def _segment(name: str, target: Target, device: DeviceName) -> Segment:
    start, length = map(sectors_to_bytes, (target.start_sectors, target.length_sectors))
    words = target.params.split()
    try:
        if target.kind == "linear":
            return Segment(start, length, (_below(words, device),))
        if target.kind == "snapshot-origin":
            return Segment(start, length, (_below([words[0], "0"], device),))
        if target.kind == "crypt" and len(words) >= _CRYPT_WORDS:
            # cipher, key, iv_offset, device, offset
            return Segment(start, length, (_below(words[3:], device),))
        if target.kind == "striped":
            chunk = sectors_to_bytes(int(words[1]))
            below = tuple(_below(words[at:], device) for at in range(2, 2 + 2 * int(words[0]), 2))
            if chunk > 0 and below:
                return Segment(start, length, below, chunk)
    except (ValueError, IndexError):
        why = f"ebbgate cannot read the table of {name}"
        return Segment(start, length, why=why, fatal=True)
    if target.kind == "mirror" and "pvmove" in name:
        why = f"pvmove is moving its data ({name}); wait for its end (lvs -a -o name,copy_percent)"
        return Segment(start, length, why=why, fatal=True)
    return Segment(start, length, why=f"below a device of type {target.kind} ({name})")


def _below(words: list[str], device: DeviceName) -> Below:
    return Below(device(words[0]), sectors_to_bytes(int(words[1])))
