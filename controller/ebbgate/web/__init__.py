# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate-web`: serves the history over HTTP and passes requests on. It is not root."""

from __future__ import annotations

from ebbgate.web.command import main

__all__ = ["main"]
