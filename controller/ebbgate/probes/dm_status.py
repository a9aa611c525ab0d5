# SPDX-License-Identifier: GPL-2.0-only
"""Parses the tables and status lines of dm-cache and dm-writecache. Pure.

The lines of dm-cache hold counted lists, which are read by their counts: positions differ between
kernels, policies and what LVM wrote into the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ebbgate.model.dm import MODES, CacheStatus, DmHealth, WritecacheStatus
from ebbgate.units import SECTOR_BYTES

# DEFAULT_MIGRATION_THRESHOLD of dm-cache-target.c.
_THRESHOLD_DEFAULT_SECTORS = 2048
_CACHE_COUNTERS = (
    *("read_hits", "read_misses", "write_hits", "write_misses", "demotions", "promotions"),
    "dirty",
)
_WRITECACHE_COUNTERS = (
    *("reads", "read_hits", "writes", "write_hits_uncommitted", "write_hits_committed"),
    *("writes_around", "writes_allocate", "writes_blocked", "flushes", "discards"),
)


class BadLine(ValueError):
    """A line that is no table or status of the target; the text names what was expected where."""


@dataclass(frozen=True, slots=True)
class CacheTable:
    """Devices as the table names them (`253:1`), block size in sectors."""

    metadata: str
    cache: str
    origin: str
    block_sectors: int
    features: tuple[str, ...] = ()
    policy: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    def params(self) -> str:
        """Return the text that loads the table again."""
        pairs = [word for pair in self.settings for word in pair]
        words = (
            *(self.metadata, self.cache, self.origin, str(self.block_sectors)),
            *(str(len(self.features)), *self.features),
            *(self.policy, str(len(pairs)), *pairs),
        )
        return " ".join(words)


class _Words:
    """The words of a line, taken one by one."""

    def __init__(self, line: str, what: str) -> None:
        self._words = line.split()
        self._at = 0
        self._what = what

    def text(self, name: str) -> str:
        if self._at >= len(self._words):
            raise BadLine(f"{self._what}: it ends where {name} should be")
        self._at += 1
        return self._words[self._at - 1]

    def number(self, name: str) -> int:
        word = self.text(name)
        if not word.isdigit():
            raise BadLine(f"{self._what}: {word!r} where {name} should be")
        return int(word)

    def pair(self, name: str) -> tuple[int, int]:
        """`used/total`."""
        first, slash, second = self.text(name).partition("/")
        if not (slash and first.isdigit() and second.isdigit()):
            raise BadLine(f"{self._what}: no used/total where {name} should be")
        return int(first), int(second)

    def counted(self, name: str) -> tuple[str, ...]:
        """A count, and as many words."""
        return tuple(self.text(name) for _ in range(self.number(f"the count of {name}")))

    def rest(self) -> Iterator[str]:
        yield from self._words[self._at :]


_MQ_SETTINGS = (
    "sequential_threshold",
    "random_threshold",
    "read_promote_adjustment",
    "write_promote_adjustment",
    "discard_promote_adjustment",
)


def parse_cache_table(params: str) -> CacheTable:
    """`metadata cache origin block #features ... policy #settings ...`. Raises BadLine."""
    words = _Words(params, "dm-cache table")
    return CacheTable(
        metadata=words.text("the metadata device"),
        cache=words.text("the cache device"),
        origin=words.text("the origin"),
        block_sectors=words.number("the block size"),
        features=words.counted("features"),
        policy=words.text("the policy"),
        settings=_pairs(words.counted("policy settings")),
    )


def table_threshold_sectors(params: str) -> int | None:
    """Return the migration_threshold that this table sets; None where it is no dm-cache table."""
    try:
        settings = dict(parse_cache_table(params).settings)
    except BadLine:
        return None
    text = settings.get("migration_threshold", str(_THRESHOLD_DEFAULT_SECTORS))
    return int(text) if text.isdigit() else None


def table_setting(params: str, name: str) -> str | None:
    """Return a policy setting of the table; None where the table does not set it."""
    try:
        return dict(parse_cache_table(params).settings).get(name)
    except BadLine:
        return None


def writecache_percent(params: str, name: str, default: int) -> int:
    """Return a watermark of a dm-writecache table; the kernel's default where it sets none."""
    found = (value for word, value in pairwise(params.split()) if word == name)
    text = next(found, "")
    return int(text) if text.isdigit() else default


def old_settings(params: str) -> tuple[str, ...]:
    """Return the settings that only the old policy mq knew: smq accepts and ignores them.

    LVM itself writes each with 0; only another value was chosen by a person.
    """
    try:
        settings = parse_cache_table(params).settings
        return tuple(name for name, value in settings if name in _MQ_SETTINGS and value != "0")
    except BadLine:
        return ()


def table_mode(params: str) -> str:
    """Return the cache mode of the table; writeback where it names none, as in the kernel.

    Raises BadLine.
    """
    features = parse_cache_table(params).features
    return next((word for word in features if word in MODES), MODES[0])


def parse_cache_status(params: str) -> CacheStatus:
    """Parse a status line. Raises BadLine.

    A cache that has failed prints `Fail`, one whose metadata cannot be read `Error`, and nothing
    else.
    """
    if params.strip() in ("Fail", "Error"):
        return CacheStatus(DmHealth.FAILED)
    words = _Words(params, "dm-cache status")
    metadata_block = words.number("the metadata block size")
    metadata = words.pair("used/total metadata blocks")
    block = words.number("the cache block size")
    used, total = words.pair("used/total cache blocks")
    counts = {name: words.number(name.replace("_", " ")) for name in _CACHE_COUNTERS}
    features = words.counted("features")
    core = dict(_pairs(words.counted("core settings")))
    threshold = core.get("migration_threshold", "")
    policy = words.text("the policy")
    settings = _pairs(words.counted("policy settings"))
    return CacheStatus(
        health=_health(tuple(words.rest())),
        metadata_block_bytes=metadata_block * SECTOR_BYTES,
        metadata_used=metadata[0],
        metadata_total=metadata[1],
        block_bytes=block * SECTOR_BYTES,
        used=used,
        total=total,
        features=features,
        migration_threshold_sectors=int(threshold) if threshold.isdigit() else None,
        policy=policy,
        policy_settings=settings,
        **counts,
    )


def _health(end: tuple[str, ...]) -> DmHealth:
    """`rw -`, `ro -`, `rw needs_check`; nothing before needs_check was printed (v4.1)."""
    if "needs_check" in end:
        return DmHealth.NEEDS_CHECK
    return DmHealth.READ_ONLY if "ro" in end else DmHealth.OK


def parse_writecache_table(params: str) -> tuple[str, str, int]:
    """Return origin and cache device as the table names them, and the block size in bytes."""
    words = _Words(params, "dm-writecache table")
    words.text("p or s")
    origin, cache = words.text("the origin"), words.text("the cache device")
    return origin, cache, words.number("the block size")


def parse_writecache_status(params: str, block_bytes: int) -> WritecacheStatus:
    """Parse a status line. Raises BadLine."""
    words = _Words(params, "dm-writecache status")
    first = words.text("the error indicator")
    figures = [words.number(name) for name in ("blocks", "free blocks", "blocks under writeback")]
    counters = zip(_WRITECACHE_COUNTERS, words.rest(), strict=False)
    return WritecacheStatus(
        int(first) if first.lstrip("-").isdigit() else 1,
        figures[0],
        figures[1],
        figures[2],
        block_bytes,
        tuple((name, int(word)) for name, word in counters if word.isdigit()),
    )


def lvm_name(dm_name: str, uuid: str) -> str:
    """Return `vg/lv` for LVM's device-mapper name, in which dashes are doubled; else empty."""
    if not uuid.startswith("LVM-"):
        return ""
    match = re.fullmatch(r"((?:[^-]|--)+)-((?:[^-]|--)+)(?:-\w+)?", dm_name)
    if match is None:
        return ""
    return "/".join(part.replace("--", "-") for part in match.groups())


def lvm_dm_name(name: str) -> str:
    """Return LVM's device-mapper name for `vg/lv`; other names as they are."""
    group, slash, volume = name.partition("/")
    if not (group and slash and volume) or "/" in volume:
        return name
    return "-".join(part.replace("-", "--") for part in (group, volume))


def _pairs(words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(words[::2], words[1::2], strict=False))
