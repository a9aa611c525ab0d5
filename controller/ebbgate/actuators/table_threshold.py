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

from ebbgate.actuators.ownership import Journal, OwnedKnob

_SHUT: Final = "0"
Lend = Callable[[], AbstractContextManager[object]]


def replace_original(
    journal: Journal, owned: OwnedKnob, original: str, at_unix_ns: int, lend: Lend
) -> None:
    """Make this the original. Waits for the journal. Raises OSError; then the older one stays.

    `lend`: in this context another thread may close the gate. See `KnobWriter`.
    """
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
