# SPDX-License-Identifier: GPL-2.0-only
"""A wish of a person: looked at, then added as a row. I/O: writes the intents database alone.

What cannot be meant is refused here, in the words of the command line; the daemon looks again.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from ebbgate.intents import validation
from ebbgate.store.intents import Intents
from ebbgate.web.databases import Databases, Look
from ebbgate.web.failure import ApiError
from ebbgate.web.models_intents import Intent, NewIntent
from ebbgate.web.news import intent

WHO: Final = "web"
WHO_MAX: Final = 64


def add(databases: Databases, wanted: NewIntent, who: str) -> Intent:
    """Add it; returns it as it is then. Raises ApiError, UsageError and what the store raises."""
    look = databases.look()
    if look.alive is not True:
        # Nobody is to be surprised by it once a daemon is started.
        text = "no daemon is running: nobody would carry it out"
        raise ApiError(
            503, text, "start it: systemctl start ebbgated", code="no_daemon", retry_after_s=5
        )
    if look.intents_why is not None:
        # A list that this process began would be another one than the daemon's.
        raise ApiError(503, look.intents_why, "see /api/v1/health", retry_after_s=5)
    _check(look, wanted)
    intents = Intents.open(databases.config.intents_path)
    try:
        number = intents.add_intent(
            wanted.kind, wanted.volume, wanted.args, who, databases.wall_ns()
        )
    except sqlite3.Error as error:
        text = f"the wish could not be kept: {error}"
        raise ApiError(503, text, "try again", retry_after_s=2) from error
    finally:
        intents.close()
    with databases.intents() as reading:
        row = reading.get(number)
    assert row is not None
    return intent(row)


def who_asked(header: str | None) -> str:
    """`web`, and what the page says who sits before it. Raises ApiError."""
    if not header:
        return WHO
    name = header.strip()
    if len(name) > WHO_MAX or not name.isprintable():
        raise ApiError(422, f"X-Ebbgate-Who is longer than {WHO_MAX} letters, or not printable")
    return f"{WHO} ({name})"


def _check(look: Look, wanted: NewIntent) -> None:
    """Raises UsageError and ApiError."""
    if wanted.volume is not None and wanted.volume not in look.live:
        text = f"the daemon does not follow {wanted.volume[:128]}"
        raise ApiError(404, text, "see /api/v1/volumes")
    # By its name only: device-mapper tells a process without rights nothing of a volume.
    validation.check(wanted.kind, wanted.volume, wanted.args)
