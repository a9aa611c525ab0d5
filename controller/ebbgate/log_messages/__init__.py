# SPDX-License-Identifier: GPL-2.0-only
"""The messages of the log at info and above: id, text, what it means, what to do."""
