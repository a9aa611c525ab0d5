# SPDX-License-Identifier: GPL-2.0-only
"""Debian's Prometheus and promtool: the machine's own, or unpacked into the cache.

Not installed: its package would begin to scrape and listen on port 9090 on whatever machine the
tests are run. I/O: apt (once), the cache folder.
"""

from __future__ import annotations

import functools

from tests.lab import apt, downloads, host

PACKAGE = "prometheus"


@functools.cache
def find(name: str) -> str:
    """Path of `prometheus` or `promtool`. Raises NoLab if it cannot be had."""
    own = host.find(name)
    if own is not None:
        return str(own)
    final = downloads.cache_dir() / "programs" / PACKAGE
    with downloads.locked(final.parent):
        if not final.exists():
            with downloads.made(final) as scratch:
                apt.unpack([PACKAGE], scratch, scratch / "root")
    return str(final / "usr" / "bin" / name)
