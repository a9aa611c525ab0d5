# SPDX-License-Identifier: GPL-2.0-only
"""The guest's initial file system: busybox, the modules that reach the root, and `guest-init`.

I/O: reads the kernel's modules and busybox, writes one archive into the cache folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from tests.lab import compression, host
from tests.lab.downloads import cache_dir
from tests.lab.errors import NoLab
from tests.lab.kernel import Kernel

HERE = Path(__file__).resolve().parent

# What has to be there before /lib/modules is: the bus, the root file system, the agent's port.
BOOT_MODULES = (
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "virtio_rng",
    "9pnet_virtio",
    "9p",
    "overlay",
)

_DIRECTORY = 0o040755
_EXECUTABLE = 0o100755


def build(kernel: Kernel, more_modules: Sequence[str] = ()) -> Path:
    """The archive for a kernel, rebuilt only if its content has changed."""
    files = _contents(kernel, [*BOOT_MODULES, *more_modules])
    digest = hashlib.sha256()
    for name, data in files:
        digest.update(f"{name} {len(data)} ".encode() + data)
    home = cache_dir() / "initramfs"
    home.mkdir(exist_ok=True)
    archive = home / f"{kernel.abi}-{digest.hexdigest()[:16]}.cpio"
    if not archive.exists():
        scratch = archive.with_suffix(f".{os.getpid()}")
        scratch.write_bytes(_cpio(files))
        scratch.rename(archive)
    return archive


def _contents(kernel: Kernel, names: Sequence[str]) -> list[tuple[str, bytes]]:
    # insmod of busybox takes no compressed module.
    modules = {
        path.name.partition(".")[0] + ".ko": compression.plain(path.read_bytes())
        for path in _with_dependencies(kernel, names)
    }
    return [
        ("init", (HERE / "guest-init").read_bytes()),
        ("guest-main", (HERE / "guest-main").read_bytes()),
        ("bin/busybox", _static_busybox().read_bytes()),
        ("modules/order", "\n".join(modules).encode()),
        *((f"modules/{name}", data) for name, data in modules.items()),
    ]


def _static_busybox() -> Path:
    path = host.find("busybox")
    # A dynamic busybox would need its libraries before the root is there.
    if path is None or b"/ld-linux" in Path(path).read_bytes():
        raise NoLab("no lab here: busybox-static not installed (see tests/lab/README.md)")
    return Path(path)


def _with_dependencies(kernel: Kernel, names: Sequence[str]) -> list[Path]:
    """Module files in an order in which each finds what it needs already loaded."""
    needs: dict[str, list[str]] = {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        path, _, dependencies = line.partition(":")
        # modules.dep lists the nearest dependency first.
        needs[path] = dependencies.split()[::-1]
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in needs}
    ordered: dict[str, None] = {}
    for name in names:
        # One that is absent is built into this kernel.
        if name in by_name:
            path = by_name[name]
            ordered.update(dict.fromkeys([*needs[path], path]))
    return [kernel.modules / path for path in ordered]


def _cpio(files: list[tuple[str, bytes]]) -> bytes:
    """A "newc" archive (Documentation/driver-api/early-userspace/buffer-format.rst).

    Not compressed: unpacking under software emulation costs more than reading 5 MiB.
    """
    folders = {str(parent) for name, _ in files for parent in Path(name).parents} - {"."}
    entries = [(name, b"", _DIRECTORY) for name in sorted(folders)]
    entries += [(name, data, _EXECUTABLE) for name, data in files]
    entries.append(("TRAILER!!!", b"", 0))
    return b"".join(
        _cpio_entry(inode, name, data, mode) for inode, (name, data, mode) in enumerate(entries, 1)
    )


def _cpio_entry(inode: int, name: str, data: bytes, mode: int) -> bytes:
    path = name.encode() + b"\0"
    fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    return _padded(header + path) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
