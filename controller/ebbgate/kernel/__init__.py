# SPDX-License-Identifier: GPL-2.0-only
"""Access to the kernel: sysfs, device-mapper, programs. I/O."""
