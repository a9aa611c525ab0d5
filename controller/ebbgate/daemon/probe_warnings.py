# SPDX-License-Identifier: GPL-2.0-only
"""Which warnings of the probe are worth a line of the log. Pure."""

from __future__ import annotations

from ebbgate.model.records import ProbeWarning


class ProbeWarnings:
    """Remembers the last line of each kind: a count that grows each second is no news each time."""

    def __init__(self) -> None:
        self._logged: dict[str, tuple[str, int]] = {}

    def is_news(self, record: ProbeWarning) -> bool:
        """Return whether to log it: another text, a count that has doubled, or that begins anew."""
        text, count = self._logged.get(record.what, ("", 0))
        if record.text == text and count < record.count < 2 * count:
            return False
        self._logged[record.what] = record.text, record.count
        return True
