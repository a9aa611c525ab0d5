# SPDX-License-Identifier: GPL-2.0-only
"""A virtual machine with a stock kernel on the host's own root file system, or on another.

I/O: QEMU, nbdkit, a folder for each guest. See README.md for the picture.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab import emulator, host, initramfs, kernel
from tests.lab.channel import Channel
from tests.lab.devices import DEFAULT_DEVICES, Attached, Device, SystemDisk
from tests.lab.errors import LabError, LostGuest, SilentGuest
from tests.lab.monitor import MONITOR
from tests.lab.session import CONSOLE, EMULATOR_LOG, Session, why_lost, why_silent
from tests.lab.wait import wait_until
from tests.lab.workdir import Workdir

CHECKOUT = Path(__file__).resolve().parents[2]
BOOT_TIMEOUT_S = 180
START_TIMEOUT_S = 2 * (BOOT_TIMEOUT_S + 60)
"""A silent guest is asked where it hangs (monitor.py), and booted once more."""
SHUTDOWN_TIMEOUT_S = 90
# Above the machine's other work, below the emulated disks.
_NICENESS = -10

# What every distribution's kernel and tools need (x86-64-v2), and nothing that is slow to emulate:
# with AVX, which libraries use where they find it, all is a tenth to a quarter slower.
_CPU = "Nehalem,+rdtscp,+rdrand,+smap,+smep,+fsgsbase"

# QEMU 10.0 aborts in about one boot of twenty, while the kernel places its PCI devices: a CPU uses
# a translation that another has just made void.
_EMULATOR_RACES = ("iotlb_to_section: Assertion", "msix_table_mmio_write: Assertion")

NETWORK_ADDRESS = "10.0.2.15"
"""The guest's own, where ports are forwarded to it (QEMU's user network hands out this one)."""
_NETWORK_UP = (
    "modprobe virtio_net && /run/lab/busybox ip link set eth0 up && "
    f"/run/lab/busybox ip addr add {NETWORK_ADDRESS}/24 dev eth0"
)

_KERNEL_OPTIONS = (
    "console=ttyS0 quiet loglevel=4",
    # A kernel fault ends the guest: with -no-reboot, QEMU exits.
    "panic=-1 oops=panic",
    # One that hangs is made to panic (monitor.py); with the stacks of all its CPUs.
    "unknown_nmi_panic panic_print=0x40",
    # The emulated CPU starves when the host is busy; these would blame the kernel for it.
    "nosoftlockup rcupdate.rcu_cpu_stall_suppress=1",
    # The TSC of an emulated CPU is the host's clock. Left alone, the kernel distrusts it and
    # falls back to a timer that costs an exit from the emulator for each reading.
    "tsc=reliable no_timer_check",
    "mitigations=off nokaslr audit=0 apparmor=0 cryptomgr.notests random.trust_cpu=on",
)


class Guest(Session):
    """A guest with its devices; a context manager, or `start` and `stop`."""

    def __init__(
        self,
        devices: Sequence[Device] = DEFAULT_DEVICES,
        *,
        memory_mib: int = 2048,
        cpus: int = 2,
        icount: bool = False,
        systemd: bool = False,
        forwards: Mapping[int, int] | None = None,
        release: str = "",
        root: Path | None = None,
    ) -> None:
        """Describe a guest.

        icount: one CPU, one instruction per nanosecond of virtual time, and no waiting: two runs
        execute the same instructions. Emulated disks keep real time and so make no sense with it.
        systemd: it is process 1, as on a real machine; else nothing runs but what the lab starts.
        forwards: TCP ports of the guest, each with the port of the host's loopback that leads to
        it; it has no network else, and reaches nothing itself.
        release: which kernel (kernel.RELEASES); $EBBGATE_LAB_KERNEL or the default if empty.
        root: folder with another root file system, of a system with systemd. What the guest changes
        is on a disk of its own and survives a `reboot`; else it is in memory.
        """
        self._hardware = devices
        self._memory_mib = memory_mib
        self._cpus = 1 if icount else cpus
        self._icount = icount
        self._systemd = systemd or root is not None
        self._root = root
        self._forwards = dict(forwards or {})
        self.release = release or kernel.chosen()
        self._attached: list[Attached] = []
        self._qemu: host.Running | None = None
        self._connected = False
        self._greeted = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether the virtual machine still runs."""
        return self._qemu is not None and self._qemu.poll() is None

    def scheduled_ns(self) -> dict[int, tuple[int, int]]:
        """What the emulator's threads had of the host's cores: see host.scheduled_ns."""
        return host.scheduled_ns(self._qemu.pid) if self._qemu is not None else {}

    def start(self) -> None:
        """Boot and return once the agent answers."""
        host.need(emulator.PROGRAM)
        self.kernel = kernel.fetch(self.release)
        emulator.find()
        self._workdir = Workdir()
        self._share = self._workdir.path / "share"
        self._share.mkdir(mode=0o777)
        try:
            self._attach()
            self._power_on()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Turn the guest off and remove its folder; harmless if it has ended already."""
        if self._greeted:
            # A guest that hangs is killed below: it must not keep the tests hanging.
            with contextlib.suppress(LabError):
                self.channel.send("power_off")
                wait_until(lambda: not self.alive, 20, "the guest to power off")
        self._end_emulator()
        for attached in self._attached:
            attached.stop()
        self._attached = []
        self._workdir.remove()

    def reboot(self) -> None:
        """Have systemd shut down, and boot again with the same disks."""
        # The guest may be off before its agent has answered.
        with contextlib.suppress(LostGuest):
            self.run(["systemctl", "--no-block", "poweroff"])
        wait_until(lambda: not self.alive, SHUTDOWN_TIMEOUT_S, "the guest to shut down")
        self._end_emulator()
        self._power_on()

    def _attach(self) -> None:
        folder = self._workdir.path
        # One by one: if one fails, those before it are stopped.
        for port, device in enumerate(self._hardware):
            self._attached.append(device.attach(folder, port))
        if self._root is not None:
            self._attached.append(SystemDisk().attach(folder))

    def _power_on(self) -> None:
        try:
            self._boot()
        except LostGuest as lost:
            # About one boot of fifty never comes to the agent: its CPUs are idle for minutes.
            silent = isinstance(lost, SilentGuest) and not self._greeted
            if not silent and not any(race in str(lost) for race in _EMULATOR_RACES):
                raise
            why = str(lost).splitlines()[0].partition(":")[0]
            print(f"lab: the guest is booted once more: {why}", file=sys.stderr)
            self._end_emulator()
            self._boot()

    def _boot(self) -> None:
        folder = self._workdir.path
        log = folder / EMULATOR_LOG
        self._qemu = host.start(self._command(self.kernel, folder), log, niceness=_NICENESS)
        wire = Channel.connect(
            folder / "agent",
            lambda: self.alive,
            lambda: why_lost(folder),
            lambda: why_silent(folder),
        )
        super().__init__(wire, self._share, folder)
        if self._icount:
            # Whenever its CPU waits for the host, the clock jumps to the next timer.
            self.clock_ahead = 5e3
        self._connected = True
        self.channel.hello(BOOT_TIMEOUT_S)
        self._greeted = True
        self._load_drivers()
        self._set_queues()
        if self._forwards:
            self.check(_NETWORK_UP)

    def _end_emulator(self) -> None:
        if self._connected:
            self.channel.close()
        self._connected = self._greeted = False
        if self._qemu is not None:
            host.stop(self._qemu)
            self._qemu = None

    def _load_drivers(self) -> None:
        modules = dict.fromkeys(m for attached in self._attached for m in attached.modules)
        for module in modules:
            self.check(["modprobe", *module.split()])
        if modules:
            # A SCSI host looks for its disks in the background.
            wait_until(self._sees_disks, 20, "the kernel to see its disks")

    def _sees_disks(self) -> bool:
        with contextlib.suppress(LabError):
            return all(self.device(device.name) for device in self._hardware)
        return False

    def _set_queues(self) -> None:
        for device in self._hardware:
            queue = f"/sys/block/{self.device(device.name)}/queue"
            # A virtio disk always says that it turns.
            self.write(f"{queue}/rotational", str(int(device.rotational)))
            self.write(f"{queue}/scheduler", device.scheduler)

    def _command(self, image: kernel.Kernel, folder: Path) -> list[str]:
        return [
            *(emulator.find(), "-nodefaults", "-no-user-config", "-display", "none"),
            *("-machine", "q35", "-cpu", _CPU, "-m", f"{self._memory_mib}M"),
            *("-smp", str(self._cpus), "-no-reboot", *self._timing()),
            *("-serial", f"file:{folder / CONSOLE}"),
            *("-monitor", f"unix:{folder / MONITOR},server=on,wait=off"),
            *("-kernel", str(image.image), "-initrd", str(self._initramfs(image))),
            *("-append", self._append(image)),
            *("-object", "rng-random,id=rng,filename=/dev/urandom"),
            *("-device", "virtio-rng-pci,rng=rng", "-device", "virtio-serial-pci"),
            *("-chardev", f"socket,id=agent,path={folder}/agent,server=on,wait=off"),
            *("-device", "virtserialport,chardev=agent,name=ebbgate.agent"),
            *(word for shown in self._folders(image) for word in _plan9(*shown[:2])),
            *(word for attached in self._attached for word in attached.qemu_args),
            *_network(self._forwards),
        ]

    def _timing(self) -> list[str]:
        if self._icount:
            return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
        return ["-accel", "tcg,thread=multi"]

    def _initramfs(self, image: kernel.Kernel) -> Path:
        return initramfs.build(image, () if self._root is None else SystemDisk.file_system)

    def _folders(self, image: kernel.Kernel) -> list[tuple[str, Path, str, str]]:
        """Tag, folder of the host, mount options, and where the guest sees it."""
        modules = f"/lib/modules/{image.abi}"
        return [
            ("lab-root", self._root or Path("/"), "", ""),
            ("lab-modules", image.modules, "ro+cache=loose", modules),
            # Not cached: an edit in the checkout must show without a new boot.
            ("lab-checkout", CHECKOUT, "ro+cache=none", str(CHECKOUT)),
            ("lab-share", self._share, "rw+cache=none", str(self._share)),
            *(
                [("lab-headers", image.sources, "ro+cache=loose", "/usr/src")]
                if image.sources.is_dir()
                else []
            ),
        ]

    def _append(self, image: kernel.Kernel) -> str:
        mounts = ",".join(
            f"{tag}:{options}:{path}" for tag, _, options, path in self._folders(image)[1:]
        )
        words = [*_KERNEL_OPTIONS, f"lab_checkout={CHECKOUT}", f"lab_mounts={mounts}"]
        if self._systemd:
            words.append("lab_init=systemd")
        if self._root is not None:
            words.append(f"lab_disk={SystemDisk.name}")
        if " " in f"{CHECKOUT}{self._share}":
            raise LostGuest("the checkout's path must not contain a blank")
        return " ".join(words)


def _network(forwards: Mapping[int, int]) -> list[str]:
    if not forwards:
        return []
    rules = [f"hostfwd=tcp:127.0.0.1:{host}-:{guest}" for guest, host in forwards.items()]
    # restrict: the guest sees neither the host nor what is beyond it.
    network = ",".join(["user,id=net,restrict=on", *rules])
    return ["-netdev", network, "-device", "virtio-net-pci,netdev=net,romfile="]


def _plan9(tag: str, path: Path) -> list[str]:
    access = "" if tag == "lab-share" else ",readonly=on"
    return [
        "-fsdev",
        f"local,id={tag},path={path},security_model=none,multidevs=remap{access}",
        "-device",
        f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
    ]
