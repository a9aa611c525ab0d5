# SPDX-License-Identifier: GPL-2.0-only
"""Policy files: found, read, checked, followed and written. I/O: the policy folders."""
