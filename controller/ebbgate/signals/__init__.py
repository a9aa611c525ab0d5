# SPDX-License-Identifier: GPL-2.0-only
"""From records and sysfs state to frames. Pure: state in, state out, time as an argument."""
