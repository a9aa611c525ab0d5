# SPDX-License-Identifier: GPL-2.0-only
"""A message of the log with its stable id. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogMessage:
    """Stands for the format in a call of `logging`; the journal's catalogue is made from it.

    `id` never changes, and is never used again for another message.
    """

    id: str
    title: str
    text: str
    meaning: str
    action: str

    def __str__(self) -> str:
        return self.text
