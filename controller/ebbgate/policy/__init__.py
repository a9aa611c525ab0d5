# SPDX-License-Identifier: GPL-2.0-only
"""What to do about a frame, and why. Pure: state in, state out, time as an argument."""

from __future__ import annotations

from typing import Final

ADAPTIVE: Final = "adaptive"
"""The shipped policy of every volume that no file matches."""
