# SPDX-License-Identifier: GPL-2.0-only
"""One strategy per file, each with its state. Pure."""
