# SPDX-License-Identifier: GPL-2.0-only
"""Measurements: the eBPF probe, recordings and sysfs. I/O."""
