# SPDX-License-Identifier: GPL-2.0-only
"""The headers of a stock kernel, which bcc compiles with, unpacked beside it in the cache folder.

I/O: apt (two packages by exact name, once), the cache folder.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.lab import apt, downloads, host, kernel
from tests.lab.errors import NoLab

_COMMON = re.compile(r"\blinux-headers-\S+-common\b")


def fetch(release: str) -> kernel.Kernel:
    """The kernel of a release with its headers. Raises NoLab if they cannot be had."""
    image = kernel.fetch(release)
    home = image.root.parent
    with downloads.locked(home):
        if not image.sources.is_dir():
            _download(image, kernel.RELEASES[release], home)
    return image


def _download(image: kernel.Kernel, release: kernel.Release, home: Path) -> None:
    own = f"linux-headers-{image.abi}"
    with tempfile.TemporaryDirectory(dir=home) as name:
        scratch = Path(name)
        options = kernel.apt_options(release, scratch)
        common = _COMMON.search(host.run(["apt-cache", *options, "show", own]))
        if not common:
            raise NoLab(f"no lab here: apt has no {own}; remove {image.root} for a newer kernel")
        root = scratch / "root"
        apt.unpack([own, common[0]], scratch, root, options)
        for link in root.glob(f"**/lib/modules/{image.abi}/*"):
            (image.modules / link.name).symlink_to(Path("/usr/src", link.readlink().name))
        image.sources.parent.mkdir(exist_ok=True)
        (root / "usr" / "src").rename(image.sources)
