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

from ebbgate.actuators.ownership import Journal, OwnedKnob, loaded_table
from ebbgate.kernel.sysfs import Sysfs
from ebbgate.probes.dm_status import table_threshold_sectors

_SHUT: Final = "0"
Lend = Callable[[], AbstractContextManager[object]]


def refresh(
    sysfs: Sysfs, table: str, journal: Journal, owned: OwnedKnob, lend: Lend, at_unix_ns: int
) -> None:
    """Make the threshold of a table that was loaded since the original.

    The table that the original belongs to may come back after others, so each is compared with the
    last. `table`: its path; `lend`: in this context another thread may close the gate (see
    `KnobWriter`). Waits for the journal. Raises OSError; then the older original stays.
    """
    params = loaded_table(sysfs, table)
    original = table_threshold_sectors(params)
    if owned.table in ("", params) or original is None:
        return
    if str(original) != owned.original:
        _replace_original(journal, owned, str(original), at_unix_ns, lend)
    owned.table = params


def came_with_table(sysfs: Sysfs, table: str, owned: OwnedKnob, value: str) -> bool:
    """Return whether another table than the original's is loaded, which sets this value."""
    try:
        params = loaded_table(sysfs, table)
    except OSError:
        return False
    return owned.table not in ("", params) and value == str(table_threshold_sectors(params))


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
