# SPDX-License-Identifier: GPL-2.0-only
"""What `status` says of a mapped volume beside what it says of any. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbgate.cli import format

_Facts = list[tuple[str, str]]


def facts(mapping: Mapping[str, Any]) -> _Facts:
    """Names, metadata and the kernel's own counters, of dm-cache or dm-writecache."""
    found = [("names", ", ".join(_names(mapping)))]
    status = mapping["status"]
    if status is None:
        return found
    if "policy" not in status:
        counters = {name.replace("_", " "): count for name, count in status["counters"]}
        return [*found, *_counted({"under writeback": status["under_writeback"], **counters})]
    metadata = format.device(mapping["metadata"]) if mapping["metadata"] else format.UNKNOWN
    used, total = status["metadata_used"], status["metadata_total"]
    return [
        *found,
        ("metadata", f"{metadata}, {format.ratio(used / total if total else None)} used"),
        ("policy", f"{_policy(status)}, blocks of {format.size(status['block_bytes'])}"),
        ("reads", f"{_hits(status, 'read')} since the metadata was made"),
        ("writes", _hits(status, "write")),
        ("moved", f"{status['promotions']} promotions, {status['demotions']} demotions since the "
                  "table was loaded"),
    ]  # fmt: skip


def _names(mapping: Mapping[str, Any]) -> list[str]:
    """LVM's, device-mapper's, the kernel's."""
    known = (mapping["lvm_name"], mapping["dm_name"], mapping["kernel_name"])
    return [name for name in known if name]


def _policy(status: Mapping[str, Any]) -> str:
    """`mq` is what LVM may have written into the table; the kernel runs smq for it."""
    return "smq (as mq)" if status["policy"] == "mq" else str(status["policy"])


def _hits(status: Mapping[str, Any], way: str) -> str:
    hits, misses = status[f"{way}_hits"], status[f"{way}_misses"]
    if not hits + misses:
        return "none"
    return f"{format.ratio(hits / (hits + misses))} hits of {hits + misses}"


def _counted(counters: Mapping[str, int]) -> _Facts:
    text = ", ".join(f"{count} {name}" for name, count in counters.items())
    return [("counters", f"{text} (blocks)")] if text else []
