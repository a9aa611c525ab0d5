# SPDX-License-Identifier: GPL-2.0-only
"""Settings of the daemon and of the web server. I/O: reads their files."""
