# SPDX-License-Identifier: GPL-2.0-only
"""The SQLite databases: the history of what happened, and the journal of originals. I/O."""
