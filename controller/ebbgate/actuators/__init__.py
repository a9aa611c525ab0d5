# SPDX-License-Identifier: GPL-2.0-only
"""Carry out decisions on kernel knobs: nothing is chosen here. I/O: sysfs writes."""
