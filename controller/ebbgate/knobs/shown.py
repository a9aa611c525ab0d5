# SPDX-License-Identifier: GPL-2.0-only
"""The knobs of bcache that ebbgate shows and never writes, one row each, and where knobs of bcache
are. Pure.

Source: drivers/md/bcache/sysfs.c of Linux 6.1.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ebbgate.knobs.knob import Knob, KnobPlace, KnobUnit, ResetCause, ValueForm
from ebbgate.model.volume import Kind

PERSISTS: Final = frozenset[ResetCause]()
REGISTERED: Final = frozenset({ResetCause.REGISTRATION, ResetCause.REBOOT})
BCACHE_ONLY: Final = frozenset({Kind.BCACHE})
_MODULE: Final = "is a parameter of the module, and may deadlock when changed"

backing = partial(Knob, kinds=BCACHE_ONLY, place=KnobPlace.BACKING, resets=REGISTERED)
in_set = partial(Knob, kinds=BCACHE_ONLY, place=KnobPlace.CACHE_SET, resets=REGISTERED)
internal = partial(Knob, kinds=BCACHE_ONLY, place=KnobPlace.CACHE_SET_INTERNAL, resets=REGISTERED)

SHOWN: Final[tuple[Knob, ...]] = (
    backing(
        name="writeback_rate_p_term_inverse",
        unit=KnobUnit.NUMBER,
        about="rate controller, proportional term",
    ),
    backing(
        name="writeback_rate_i_term_inverse",
        unit=KnobUnit.NUMBER,
        about="rate controller, integral term",
    ),
    backing(
        name="writeback_consider_fragment",
        unit=KnobUnit.FLAG,
        about="destage faster when fragmented",
    ),
    backing(
        name="writeback_metadata", unit=KnobUnit.FLAG, about="no effect: the kernel never reads it"
    ),
    backing(
        name="cache_mode",
        form=ValueForm.CHOICE,
        unit=KnobUnit.WORD,
        about="persists; each change writes to the disk",
        resets=PERSISTS,
        never="decides what a dead SSD costs, and persists: only the administrator changes it",
    ),
    backing(
        name="readahead_cache_policy",
        form=ValueForm.CHOICE,
        unit=KnobUnit.WORD,
        about="what readahead may cache",
    ),
    backing(
        name="stop_when_cache_set_failed",
        form=ValueForm.CHOICE,
        unit=KnobUnit.WORD,
        about="what to do when the cache fails",
        never="decides whether data without its cache may be written",
    ),
    in_set(
        name="journal_delay_ms",
        unit=KnobUnit.MILLISECONDS,
        about="delay of the cache's journal, ms",
    ),
    internal(name="gc_after_writeback", unit=KnobUnit.FLAG, about="garbage collection once clean"),
    internal(
        name="cutoff_writeback",
        unit=KnobUnit.PERCENT,
        about="above it no async write is cached, percent",
        never=_MODULE,
    ),
    internal(
        name="cutoff_writeback_sync",
        unit=KnobUnit.PERCENT,
        about="above it no write is cached, percent",
        never=_MODULE,
    ),
)
