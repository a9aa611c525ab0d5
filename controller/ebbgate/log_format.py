# SPDX-License-Identifier: GPL-2.0-only
"""Formats log records without control characters, whatever their text holds. Pure."""

from __future__ import annotations

import copy
import logging

from ebbgate.text import clean_lines


class CleanFormatter(logging.Formatter):
    """Replaces unsafe characters of the whole record; the lines of a stack trace stay lines."""

    def format(self, record: logging.LogRecord) -> str:
        shown = copy.copy(record)
        shown.msg, shown.args = record.getMessage().replace("\n", " "), None
        return clean_lines(super().format(shown))
