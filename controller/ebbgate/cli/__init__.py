# SPDX-License-Identifier: GPL-2.0-only
"""The command line: reads history and sysfs, asks the daemon; it tunes nothing itself."""

from __future__ import annotations

from ebbgate.cli.app import main

__all__ = ["main"]
