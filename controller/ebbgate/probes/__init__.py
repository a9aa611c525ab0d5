# SPDX-License-Identifier: GPL-2.0-only
"""Where measurements come from: the eBPF probe, recordings, and sysfs. I/O lives here."""
