# SPDX-License-Identifier: GPL-2.0-only
"""Debian's Prometheus, nginx and Ansible: the machine's own, or unpacked into the cache.

Not installed: their packages would begin to listen, and to scrape, on whatever machine the tests
are run. I/O: apt (once), the cache folder.
"""

from __future__ import annotations

import functools

from tests.lab import apt, downloads, host

FILES = {
    "prometheus": ("prometheus", "usr/bin/prometheus"),
    "promtool": ("prometheus", "usr/bin/promtool"),
    "nginx": ("nginx", "usr/sbin/nginx"),
    "ansible-playbook": ("ansible-core", "usr/bin/ansible-playbook"),
}
"""By program, its package and its file."""
_NEEDS = {
    "ansible-core": (
        *("python3-cryptography", "python3-jinja2", "python3-markupsafe", "python3-packaging"),
        *("python3-resolvelib", "python3-yaml"),
    )
}
"""What a package needs beside what every Debian has."""


@functools.cache
def find(name: str) -> str:
    """Path of one of FILES. Raises NoLab if it cannot be had."""
    own = host.find(name)
    if own is not None:
        return str(own)
    package, file = FILES[name]
    final = downloads.cache_dir() / "programs" / package
    with downloads.locked(final.parent):
        if not final.exists():
            with downloads.made(final) as scratch:
                apt.unpack([package, *_NEEDS.get(package, ())], scratch, scratch / "root")
    return str(final / file)
