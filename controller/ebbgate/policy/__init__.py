# SPDX-License-Identifier: GPL-2.0-only
"""Decides what to do, and why; `engine` is the only way in. Pure: time is an argument."""

from __future__ import annotations

from typing import Final

ADAPTIVE: Final = "adaptive"
"""The shipped policy for volumes that no file matches."""
