# SPDX-License-Identifier: GPL-2.0-only
"""Where the kernel is asked: sysfs, device-mapper, programs. I/O: all of it."""
