# SPDX-License-Identifier: GPL-2.0-only
"""Reads files and ranges so that the kernel takes them into the cache."""
