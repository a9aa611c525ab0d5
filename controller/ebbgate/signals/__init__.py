# SPDX-License-Identifier: GPL-2.0-only
"""Turns records and sysfs state into frames. Pure: time is an argument."""
