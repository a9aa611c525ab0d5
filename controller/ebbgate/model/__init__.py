# SPDX-License-Identifier: GPL-2.0-only
"""The nouns of ebbgate: what was measured, what was decided, what became of it. Pure."""
