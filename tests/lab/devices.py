# SPDX-License-Identifier: GPL-2.0-only
"""Block devices for a guest: an emulated hard disk and a fast disk.

I/O: sparse files, one nbdkit process for each hard disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from tests.lab import host
from tests.lab.errors import LabError
from tests.lab.hdd_control import HddControl
from tests.lab.hdd_queue import AS_SOLD, PLAIN, HddFeatures

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
    modules: tuple[str, ...] = ()
    """What the guest's kernel needs to see it and does not have from the start, with options."""


class Attachment(StrEnum):
    """How a hard disk is connected: what the guest's kernel takes it for."""

    VIRTIO = "virtio"
    """Has no queue depth to set, and does not say that it turns."""
    SCSI = "scsi"
    """On a virtio-scsi controller of its own: the kernel's SCSI disk, as SAS disks are."""
    AHCI = "ahci"
    """On one of the six SATA ports of the machine: the kernel's libata, as most users have it."""


_MODULES = {
    Attachment.VIRTIO: (),
    Attachment.SCSI: ("virtio_scsi", "sd_mod"),
    # QEMU's SATA disk looks like one behind a PATA bridge, which limits requests to 128 KiB; with
    # the option it takes as much at a time as a user's (a later kernel knows QEMU's disk).
    Attachment.AHCI: ("libata force=max_sec_lba48", "ahci", "sd_mod"),
}


@dataclass(frozen=True, slots=True)
class Hdd:
    """A hard disk after hdd_model.py behind an NBD socket.

    A SATA disk holds 32 requests in one queue; a virtio disk holds 256 in each of its queues
    unless told otherwise, which would hide from the I/O scheduler what it has to sort.

    features: what the disk does with its queue (hdd_queue.py).
    iothread: serve it in a thread of its own; AHCI cannot.
    """

    name: str
    size_bytes: int = 2 * GIB
    queue_size: int = 32
    seed: int = 1
    attachment: Attachment = Attachment.VIRTIO
    features: HddFeatures = PLAIN
    iothread: bool = True
    rotational = True
    scheduler = "mq-deadline"

    def attach(self, folder: Path, port: int = 0) -> Attached:
        """Make the disk's file and start its server. `port`: where SATA disks are plugged in."""
        host.need("nbdkit")
        image = _sparse_file(folder / f"{self.name}.img", self.size_bytes)
        HddControl.create(control_path(folder, self.name), self.features).close()
        socket = folder / f"{self.name}.nbd"
        command, log = self._server(image, folder, socket), folder / f"{self.name}.log"
        server = host.start(command, log, niceness=_DISK_NICENESS)
        _wait_for_socket(socket, server, log)
        drive = f"file.driver=nbd,file.server.type=unix,file.server.path={socket}"
        qemu_args = [*_drive(self.name, drive), *self._plug(port)]
        return Attached(qemu_args, lambda: host.stop(server), _MODULES[self.attachment])

    def _plug(self, port: int) -> list[str]:
        io = f"io-{self.name}"
        thread = ["-object", f"iothread,id={io}"] if self.iothread else []
        in_thread = f",iothread={io}" if self.iothread else ""
        # What the disk tells of its write cache is true. QEMU's virtio says that there is one.
        cache = "on" if self.features.write_cache_bytes else "off"
        spins = f"rotation_rate=7200,write-cache={cache}"
        match self.attachment:
            case Attachment.VIRTIO:
                return [*thread, *_virtio(self.name, f"{in_thread},queue-size={self.queue_size}")]
            case Attachment.SCSI:
                bus = f"scsi-{self.name}"
                queue = f"num_queues=1,cmd_per_lun={self.queue_size}{in_thread}"
                disk = f"scsi-hd,bus={bus}.0,{_identity(self.name)},{spins}"
                return [*thread, "-device", f"virtio-scsi-pci,id={bus},{queue}", "-device", disk]
            case Attachment.AHCI:
                disk = f"ide-hd,bus=ide.{port},{_identity(self.name)},{spins}"
                # SeaBIOS waits for 32 s for an answer of this disk; qboot does not look at disks.
                return ["-bios", "qboot.rom", "-device", disk]

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

    def attach(self, folder: Path, _port: int = 0) -> Attached:
        """Make the disk's file."""
        image = _sparse_file(folder / f"{self.name}.img", self.size_bytes)
        drive = f"file.driver=file,file.filename={image},file.aio=threads,cache=unsafe"
        io = f"io-{self.name}"
        options = f",iothread={io},queue-size={self.queue_size}"
        thread = ["-object", f"iothread,id={io}"]
        return Attached([*_drive(self.name, drive), *thread, *_virtio(self.name, options)])


@dataclass(frozen=True, slots=True)
class SystemDisk:
    """What a guest with a root of its own has changed there (guest-init)."""

    name: ClassVar = "system"
    file_system: ClassVar = ("crc32c_generic", "ext4")
    """The modules of its file system; ext4 looks for a checksum that nothing else loads."""
    size_bytes: int = 4 * GIB

    def attach(self, folder: Path) -> Attached:
        """Make the disk's file, and a file system on it."""
        image = _sparse_file(folder / f"{self.name}.img", self.size_bytes)
        host.need("mkfs.ext4")
        host.run([host.find("mkfs.ext4") or "mkfs.ext4", "-q", "-F", image])
        drive = f"file.driver=file,file.filename={image},file.aio=threads,cache=unsafe"
        return Attached([*_drive(self.name, drive), *_virtio(self.name, "")])


Device = Hdd | Ssd

# One pair for a cache, one bare pair for the arms that it is compared with.
DEFAULT_DEVICES: tuple[Device, ...] = (Hdd("hdd0"), Ssd("ssd0"), Hdd("hdd1", seed=2), Ssd("ssd1"))


def as_sold(
    name: str,
    attachment: Attachment = Attachment.AHCI,
    *,
    write_cache: bool = True,
    seed: int = 1,
) -> Hdd:
    """A hard disk like a user's: it reorders, caches writes and reads ahead."""
    features = AS_SOLD if write_cache else replace(AS_SOLD, write_cache_bytes=0)
    return Hdd(name, seed=seed, attachment=attachment, features=features)


def control_path(folder: Path, name: str) -> Path:
    """The shared page (HddControl) of a hard disk whose guest runs in `folder`."""
    return folder / f"{name}.control"


def _drive(name: str, drive: str) -> list[str]:
    cache = "" if "cache=" in drive else ",cache=none"
    return ["-drive", f"if=none,id={name},format=raw,{drive}{cache}"]


def _virtio(name: str, options: str) -> list[str]:
    """A virtio disk. The options name a thread of its own: what the agent or the file system asks
    of QEMU must not delay the disk.
    """
    return ["-device", f"virtio-blk-pci,{_identity(name)}{options},num-queues=1"]


def _identity(name: str) -> str:
    # The serial number is how the guest finds the disk again, whatever letter it has.
    return f"drive={name},serial={name}"


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
