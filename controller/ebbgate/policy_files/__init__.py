# SPDX-License-Identifier: GPL-2.0-only
"""Finds, reads, checks and writes policy files. I/O: the policy folders."""
