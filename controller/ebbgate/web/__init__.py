# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate-web`: the history over HTTP, wishes as intents. It tunes nothing and is not root."""

from __future__ import annotations

from ebbgate.web.command import main

__all__ = ["main"]
