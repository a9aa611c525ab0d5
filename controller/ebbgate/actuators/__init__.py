# SPDX-License-Identifier: GPL-2.0-only
"""Writes the knobs of a volume and puts them back; decides nothing. I/O."""
