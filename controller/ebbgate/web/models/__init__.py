# SPDX-License-Identifier: GPL-2.0-only
"""The documents of the API: their fields, types and texts."""
