# SPDX-License-Identifier: GPL-2.0-only
"""Replaces the original of dm-cache's `migration_threshold` after another table was loaded.

I/O: the journal. A table has a threshold of its own, which is the original
from then on. The older original stays in force until the new one is durable. Until then a close of
the gate may write 0, so 0 is one of the values of the new entry from the beginning: wherever a
process is killed, the threshold is not taken for somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final

from ebbgate.actuators import ownership
from ebbgate.actuators.ownership import Journal, OwnedKnob
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.model.dm import DmMapping

_SHUT: Final = "0"
_Table = tuple[str, DmMapping | None]
Lend = Callable[[], AbstractContextManager[object]]


def refresh(
    sysfs: Sysfs, table: _Table, journal: Journal, owned: OwnedKnob, lend: Lend, at_unix_ns: int
) -> None:
    """Make the threshold of a table that was loaded since the original.

    `table`: its path, and the mapping that is known; `lend`: in this context another thread may
    close the gate (see `KnobWriter`). Waits for the journal. Raises OSError; then the older
    original stays.
    """
    original = ownership.other_threshold(sysfs, *table)
    if original is not None and original != owned.original:
        _replace_original(journal, owned, original, at_unix_ns, lend)


def _replace_original(
    journal: Journal, owned: OwnedKnob, original: str, at_unix_ns: int, lend: Lend
) -> None:
    older, other = owned.entry, _SHUT
    if owned.tried is not None:
        # Which of two values it has is not known, and a record has room for two.
        other, lend = owned.tried, nullcontext
    entry = replace(older, original=original, at_unix_ns=at_unix_ns)
    with lend():
        journal.replace(entry, older, (other, owned.written))
    owned.entry = entry
    last = owned.written if owned.tried is None else owned.tried
    journal.writing(entry, last, owned.written)
    journal.forget(older)
