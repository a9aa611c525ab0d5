# SPDX-License-Identifier: GPL-2.0-only
"""Where data of people (files, relations, disks of guests) lies on a cached volume."""
