# SPDX-License-Identifier: GPL-2.0-only
"""What to do about a frame, and why. Pure: state in, state out, time as an argument."""
