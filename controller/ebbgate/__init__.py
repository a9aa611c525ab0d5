# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate: retunes the stock kernel block caches in real time and explains every change."""

__version__ = "0.2.0"
