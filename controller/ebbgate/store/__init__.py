# SPDX-License-Identifier: GPL-2.0-only
"""Two SQLite databases: what happened (history) and what people want (intents). I/O lives here."""
