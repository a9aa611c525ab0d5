# SPDX-License-Identifier: GPL-2.0-only
"""Block devices for a guest: an emulated hard disk and a fast disk.

I/O: sparse files, one nbdkit process for each hard disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import host
from tests.lab.errors import LabError
from tests.lab.hdd_control import HddControl

MIB = 1024 * 1024
GIB = 1024 * MIB

_PLUGIN = Path(__file__).resolve().parent / "hdd_plugin.py"
# QEMU's NBD client has 16 requests under way at most (block/nbd.c); one thread takes one.
_NBDKIT_THREADS = 20
# The disk keeps real time, whatever else the machine does, the guest's own CPUs included.
_DISK_NICENESS = -15


@dataclass(slots=True)
class Attached:
    """A device that is ready for a guest; `stop` ends what serves it."""

    qemu_args: list[str]
    stop: Callable[[], None] = field(default=lambda: None)


@dataclass(frozen=True, slots=True)
class Hdd:
    """A hard disk after hdd_model.py behind an NBD socket.

    A SATA disk holds 32 requests in one queue; a virtio disk holds 256 in each of its queues
    unless told otherwise, which would hide from the I/O scheduler what it has to sort.
    """

    name: str
    size_bytes: int = 2 * GIB
    queue_size: int = 32
    seed: int = 1
    rotational = True
    scheduler = "mq-deadline"

    def attach(self, folder: Path) -> Attached:
        """Make the disk's file and start its server."""
        host.need("nbdkit")
        image = _sparse_file(folder / f"{self.name}.img", self.size_bytes)
        HddControl.create(control_path(folder, self.name)).close()
        socket = folder / f"{self.name}.nbd"
        command, log = self._server(image, folder, socket), folder / f"{self.name}.log"
        server = host.start(command, log, niceness=_DISK_NICENESS)
        _wait_for_socket(socket, server, log)
        drive = f"file.driver=nbd,file.server.type=unix,file.server.path={socket}"
        return Attached(_disk(self.name, drive, self.queue_size), lambda: host.stop(server))

    def _server(self, image: Path, folder: Path, socket: Path) -> list[str]:
        return [
            *("nbdkit", "--foreground", "--newstyle"),
            *("--threads", str(_NBDKIT_THREADS), "--unix", str(socket)),
            *("python", str(_PLUGIN), f"file={image}", f"size={self.size_bytes}"),
            *(f"seed={self.seed}", f"control={control_path(folder, self.name)}"),
        ]


@dataclass(frozen=True, slots=True)
class Ssd:
    """A fast disk: a sparse file in the host's page cache.

    No request ever waits for the host's own disk (cache=unsafe ignores flushes): what the host
    does meanwhile must not look like a slow SSD. The data outlives the guest, not the host.
    """

    name: str
    size_bytes: int = GIB
    queue_size: int = 256
    rotational = False
    scheduler = "none"

    def attach(self, folder: Path) -> Attached:
        """Make the disk's file."""
        image = _sparse_file(folder / f"{self.name}.img", self.size_bytes)
        drive = f"file.driver=file,file.filename={image},file.aio=threads,cache=unsafe"
        return Attached(_disk(self.name, drive, self.queue_size))


Device = Hdd | Ssd

# One pair for a cache, one bare pair for the arms that it is compared with.
DEFAULT_DEVICES: tuple[Device, ...] = (Hdd("hdd0"), Ssd("ssd0"), Hdd("hdd1", seed=2), Ssd("ssd1"))


def control_path(folder: Path, name: str) -> Path:
    """The shared page (HddControl) of a hard disk whose guest runs in `folder`."""
    return folder / f"{name}.control"


def _disk(name: str, drive: str, queue_size: int) -> list[str]:
    cache = "" if "cache=" in drive else ",cache=none"
    # The serial number is how the guest finds the disk again, whatever letter it has. A thread of
    # its own: what the agent or the file system asks of QEMU must not delay the disk.
    disk = f"drive={name},serial={name},iothread=io-{name}"
    return [
        *("-drive", f"if=none,id={name},format=raw,{drive}{cache}"),
        *("-object", f"iothread,id=io-{name}"),
        *("-device", f"virtio-blk-pci,{disk},queue-size={queue_size},num-queues=1"),
    ]


def _sparse_file(path: Path, size_bytes: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def _wait_for_socket(socket: Path, server: host.Running, log: Path) -> None:
    deadline = time.monotonic() + 20
    while not socket.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            host.stop(server)
            raise LabError(f"nbdkit did not start: {log.read_text(errors='replace').strip()}")
        time.sleep(0.01)
