# SPDX-License-Identifier: GPL-2.0-only
"""The probe while volumes and modules come and go, and on devices of other kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.errors import UncleanStack
from tests.lab.kernel_matrix import HONEST_NO, has_module_types, needs, on_kernels
from tests.lab.probe import GuestProbe
from tests.lab.session import Session
from tests.lab.wait import wait_until
from tests.probe_records import of_type

pytestmark = on_kernels("volumes and modules come and go")

# CAP_SYS_ADMIN, CAP_SYSLOG, CAP_PERFMON, CAP_BPF (linux/capability.h).
_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 1 << 21, 1 << 38, 1 << 39
_CAPABILITIES = _CAP_SYS_ADMIN | 1 << 34 | _CAP_PERFMON | _CAP_BPF
Kind = Callable[[Session, str], AbstractContextManager[str]]
# Modules that nothing here uses. In a kernel that has loaded many, small ones find other places.
FILLERS = ("raid1", "raid10", "raid456", "dm-thin-pool", "dm-integrity", "dm-zoned", "xfs")
SETTINGS = {"writeback_delay": 0, "writeback_percent": 40, "writeback_running": 0}


@pytest.fixture(scope="module", autouse=True)
def _needs(guest: Session) -> None:
    needs(guest, "volume", "path", "class")


def module_users(guest: Session) -> int:
    return int(guest.read("/sys/module/bcache/refcnt"))


def test_a_volume_comes_and_goes_and_lets_the_module_go(guest: Session) -> None:
    with BcacheStack(guest, settings=SETTINGS) as stack, GuestProbe(guest) as probe:
        alone = module_users(guest)
        for _ in range(2):
            probe.track(stack)
            writes = fio.Job(stack.device, "randwrite", "4k", options={"io_size": "128k"})
            fio.run(guest, writes, seed=1)
            assert probe.tick(stack.volume)["fg"]["write"]["ios"] == 32
            assert module_users(guest) > alone
            probe.send(f"untrack {stack.volume}")
            wait_until(lambda: module_users(guest) == alone, 10, "the module to be released")


def test_a_vanished_volume_is_untracked(guest: Session) -> None:
    with (
        GuestProbe(guest) as probe,
        pytest.raises(UncleanStack, match="gone"),
        BcacheStack(guest, settings=SETTINGS) as stack,
    ):
        probe.track(stack)
        guest.write(f"{stack.sysfs}/stop", "1")
        assert probe.wait_for("untrack", vol=stack.volume)["why"] == "vanished"


def test_bcache_may_be_loaded_after_the_probe(guest: Session) -> None:
    guest.run(["modprobe", "--remove", "bcache"]).check()
    with GuestProbe(guest) as probe:
        assert probe.wait_for("hello")["signals"]["path"].startswith("missing")
        with BcacheStack(guest, settings=SETTINGS) as stack:
            probe.track(stack)
            assert not probe.wait_for("signals")["signals"]["path"].startswith("missing")
            writes = fio.Job(stack.device, "randwrite", "4k", options={"io_size": "128k"})
            fio.run(guest, writes, seed=2)
            assert probe.tick(stack.volume)["path"]["write"]["writeback"]["ios"] == 32
            kept = capabilities(guest, probe)
            # What another volume may need later, and nothing else.
            assert kept & _CAP_BPF
            assert kept & ~_CAPABILITIES == 0


def capabilities(guest: Session, probe: GuestProbe) -> int:
    status = guest.read(f"/proc/{probe.process.pid}/status")
    return int(status.partition("CapPrm:")[2].split()[0], 16)


def unload_dm_cache(guest: Session) -> None:
    guest.check(["modprobe", "dm-mod"])
    guest.run(["modprobe", "--remove", "dm-cache-smq", "dm-cache"]).check()


def expect_exact_dm_cache(guest: Session, probe: GuestProbe) -> None:
    with DmCacheStack(guest, lvm=False) as stack:
        for _ in range(2):
            probe.track_dm(stack)
            writes = fio.Job(stack.device, "randwrite", "4k", options={"io_size": "128k"})
            fio.run(guest, writes, seed=5)
            taken = probe.tick(stack.name)["path"]["write"]
            assert sum(flow["ios"] for flow in taken.values()) == 32
            probe.send(f"untrack {stack.name}")


def test_dm_cache_may_be_loaded_after_the_probe(guest: Session) -> None:
    needs(guest, "dm_path")
    unload_dm_cache(guest)
    with GuestProbe(guest) as probe:
        signals = probe.wait_for("hello")["signals"]
        assert signals["dm_path"] == "ok"
        assert signals["dm_class"].startswith("missing")
        expect_exact_dm_cache(guest, probe)


def test_dm_cache_may_be_loaded_after_bcache_was_followed(guest: Session) -> None:
    """By then the probe has given up what only bcache's types and programs needed."""
    needs(guest, "dm_path")
    unload_dm_cache(guest)
    with GuestProbe(guest) as probe:
        with BcacheStack(guest, settings=SETTINGS) as stack:
            probe.track(stack)
            probe.tick(stack.volume)
            probe.send(f"untrack {stack.volume}")
            probe.wait_for("untrack", vol=stack.volume)
        assert capabilities(guest, probe) & (_CAP_SYS_ADMIN | _CAP_PERFMON) == 0
        expect_exact_dm_cache(guest, probe)


def load_elsewhere(guest: Session) -> None:
    """Load bcache again, after other modules, one more each time, until its place is taken."""

    def address() -> str:
        return guest.check("grep -w dirty_endio /proc/kallsyms")

    before = address()
    for module in FILLERS:
        guest.check(f"modprobe --remove bcache && modprobe {module} && modprobe bcache")
        if address() != before:
            return
    pytest.fail("bcache lies at the same address again, whatever was loaded before it")


@pytest.mark.full
def test_addresses_are_read_again_when_bcache_is_loaded_again(guest: Session) -> None:
    with GuestProbe(guest) as probe:
        for round_ in range(2):
            with BcacheStack(guest, settings=SETTINGS) as stack:
                probe.track(stack, f"v{round_}")
                writes = fio.Job(stack.device, "randwrite", "4k", options={"io_size": "256k"})
                fio.run(guest, writes, seed=6)
                stack.drain()
                destage = probe.tick(f"v{round_}")["destage"]
                assert 200_000 < destage["done_bytes"] == destage["queued_bytes"]
                probe.send(f"untrack v{round_}")
                probe.wait_for("untrack", vol=f"v{round_}")
            if round_ == 0:
                load_elsewhere(guest)
    guest.run(["modprobe", "--remove", *FILLERS])


@contextmanager
def hidden_addresses(guest: Session) -> Iterator[None]:
    """The kernel hides the addresses of its functions."""
    switch = "/proc/sys/kernel/kptr_restrict"
    before = guest.read(switch)
    guest.write(switch, "2")
    try:
        yield
    finally:
        guest.write(switch, before)


def test_without_addresses_a_volume_is_followed_but_not_paced(guest: Session) -> None:
    with (
        BcacheStack(guest, settings=SETTINGS) as stack,
        hidden_addresses(guest),
        GuestProbe(guest) as probe,
    ):
        signals = probe.wait_for("hello")["signals"]
        assert signals["path"] == "ok"
        assert "kptr_restrict" in signals["class"]
        probe.track(stack)
        said = probe.wait_for("track", vol=stack.volume)["class"]
        assert said.startswith("missing: the kernel hides the address of dirty_endio")
        assert "set kernel.kptr_restrict to 1" in said
        probe.send(f"pace {stack.volume} 10000000")
        assert "the kernel hides" in probe.wait_for("error")["text"]
        writes = fio.Job(stack.device, "randwrite", "4k", options={"io_size": "128k"})
        fio.run(guest, writes, seed=7)
        assert probe.tick(stack.volume)["path"]["write"]["writeback"]["ios"] == 32
        assert not of_type(probe.records(), "queue")


@pytest.mark.full
def test_without_addresses_a_volume_of_device_mapper_is_not_paced_either(guest: Session) -> None:
    needs(guest, "dm_path")
    with (
        DmCacheStack(guest, lvm=False) as stack,
        hidden_addresses(guest),
        GuestProbe(guest) as probe,
    ):
        probe.track_dm(stack)
        said = probe.wait_for("track", vol=stack.name)["class"]
        assert said.startswith("missing: the kernel hides the address of")
        probe.send(f"pace {stack.name} 10000000")
        assert "the kernel hides" in probe.wait_for("error")["text"]
        writes = fio.Job(stack.device, "randwrite", "4k", options={"io_size": "128k"})
        fio.run(guest, writes, seed=8)
        taken = probe.tick(stack.name)["path"]["write"]
        assert sum(flow["ios"] for flow in taken.values()) == 32


def test_what_is_no_volume_of_device_mapper_is_refused(guest: Session) -> None:
    disk, other = (guest.read(f"/sys/block/{guest.device(d)}/dev") for d in ("hdd0", "ssd0"))
    with GuestProbe(guest) as probe:
        probe.send(f"track v kind=dm-cache volume={disk} cache={other} backing={disk}")
        assert "not a volume of dm-cache" in probe.wait_for("error")["text"]


def test_a_detached_volume_is_still_followed(guest: Session) -> None:
    with (
        GuestProbe(guest) as probe,
        pytest.raises(UncleanStack, match="no cache"),
        BcacheStack(guest, settings=SETTINGS) as stack,
    ):
        probe.track(stack)
        guest.write(f"{stack.sysfs}/detach", "1")
        wait_until(lambda: stack.state() == "no cache", 20, "the cache to be detached")
        reads = fio.Job(stack.device, "randread", "4k", options={"io_size": "128k"})
        fio.run(guest, reads, seed=3)
        tick = probe.tick(stack.volume)
        assert tick["fg"]["read"]["ios"] == 32
        assert tick["inflight"] == {"read": 0, "write": 0}
        probe.wait(lambda _: probe.edges(stack.volume)[-1]["edge"] == "idle", "idle edge")


@contextmanager
def mapped(guest: Session, disk: str) -> Iterator[str]:
    """A disk below device-mapper: a device without requests of its own."""
    sectors = guest.read(f"/sys/block/{disk}/size")
    guest.check(["modprobe", "dm-mod"])
    guest.check(["dmsetup", "create", "slow", "--table", f"0 {sectors} linear /dev/{disk} 0"])
    try:
        minor = guest.check(["dmsetup", "info", "-c", "--noheadings", "-o", "minor", "slow"])
        yield f"dm-{minor.strip()}"
    finally:
        guest.check(["dmsetup", "remove", "--retry", "slow"])


@contextmanager
def partitioned(guest: Session, disk: str) -> Iterator[str]:
    """A partition of a disk."""
    guest.check(["addpart", f"/dev/{disk}", "1", "2048", "2097152"])
    try:
        yield f"{disk}1"
    finally:
        guest.check(["delpart", f"/dev/{disk}", "1"])


@contextmanager
def striped(guest: Session, disk: str) -> Iterator[str]:
    """Two halves of a disk joined by md in stripes of 4 KiB: nearly every request is split."""
    half_mib = 512
    for number in (1, 2):
        start = 2048 + (number - 1) * half_mib * 2048
        guest.check(["addpart", f"/dev/{disk}", str(number), str(start), str(half_mib * 2048)])
    guest.check(["modprobe", "raid0"])
    guest.write("/sys/module/md_mod/parameters/new_array", "md_slow")
    md = "/sys/block/md_slow/md"
    try:
        for name, value in (("metadata_version", "none"), ("level", "raid0"), ("raid_disks", "2")):
            guest.write(f"{md}/{name}", value)
        guest.write(f"{md}/chunk_size", "4096")
        for number in (1, 2):
            guest.write(f"{md}/new_dev", guest.read(f"/sys/class/block/{disk}{number}/dev"))
            guest.write(f"{md}/dev-{disk}{number}/size", str(half_mib * 1024))
            guest.write(f"{md}/dev-{disk}{number}/slot", str(number - 1))
        guest.write(f"{md}/array_state", "active")
        yield "md_slow"
    finally:
        guest.write(f"{md}/array_state", "clear")
        for number in (1, 2):
            guest.check(["delpart", f"/dev/{disk}", str(number)])


@contextmanager
def volume_on(guest: Session, backing: str, cache: str) -> Iterator[str]:
    """A bcache volume on devices that a BcacheStack does not take; yields its kernel name."""
    folders = [f"/sys/class/block/{name}/bcache" for name in (backing, cache)]
    guest.check(["modprobe", "bcache"])
    guest.check(
        [
            "make-bcache",
            "--writeback",
            "--wipe-bcache",
            "-B",
            f"/dev/{backing}",
            "-C",
            f"/dev/{cache}",
        ]
    )
    for device in (cache, backing):
        guest.write("/sys/fs/bcache/register", f"/dev/{device}")
    guest.wait_for_path(f"{folders[0]}/dev")
    try:
        for name, value in SETTINGS.items():
            guest.write(f"{folders[0]}/{name}", str(value))
        yield (guest.resolve(f"{folders[0]}/dev") or "").rpartition("/")[2]
    finally:
        guest.write(f"{folders[1]}/set/stop", "1")
        gone = f"! test -e {folders[0]} && ! test -e {folders[1]}"
        wait_until(lambda: guest.run(gone).rc == 0, 60, "the volume to be gone")
        for device in (cache, backing):
            guest.write(f"/dev/{device}", "\0" * 65536)


def track_if_possible(guest: Session, probe: GuestProbe, command: str) -> None:
    """Track a volume; skip where the probe refuses it for want of what old kernels do not tell."""
    probe.send(command)
    answer = probe.wait(lambda records: of_type(records, "track") + of_type(records, "error"), "it")
    if answer[0]["t"] == "error":
        said = answer[0]["text"]
        assert said.endswith("or boot a newer kernel")
        assert not has_module_types(guest), said
        pytest.skip(HONEST_NO + said.partition(":")[0])


@pytest.mark.parametrize(
    "kind", [mapped, pytest.param(partitioned, marks=pytest.mark.full), striped]
)
def test_destage_is_exact_on_any_kind_of_backing_device(guest: Session, kind: Kind) -> None:
    cache = guest.device("ssd1")
    with (
        kind(guest, guest.device("hdd1")) as slow,
        volume_on(guest, slow, cache) as volume,
        GuestProbe(guest) as probe,
    ):
        numbers = [guest.read(f"/sys/class/block/{name}/dev") for name in (volume, cache, slow)]
        command = "track v kind=bcache volume={} cache={} backing={}".format(*numbers)
        track_if_possible(guest, probe, command)
        options = {"size": "64m", "io_size": "1m"}
        writes = fio.Job(f"/dev/{volume}", "randwrite", "16k", options=options)
        result = fio.run(guest, writes, seed=4)
        knobs = f"/sys/block/{volume}/bcache"
        for name, value in (("writeback_percent", 0), ("writeback_running", 1)):
            guest.write(f"{knobs}/{name}", str(value))
        wait_until(lambda: guest.read(f"{knobs}/state") == "clean", 60, "the volume to be clean")
        tick = probe.tick("v")
        assert tick["fg"]["write"]["ios"] == result.ios == 64
        # Blocks that were written twice are destaged once.
        assert 0.9 * result.bytes < tick["destage"]["done_bytes"] <= result.bytes
        assert tick["destage"]["done_bytes"] == tick["destage"]["queued_bytes"]
        flow = tick["dev"]["backing"]["write"]["bg"]
        assert 0 <= flow["bytes"] - tick["destage"]["done_bytes"] <= 3 * 8192
        assert sum(flow["lat"]) == flow["ios"]
        assert tick["inflight"] == {"read": 0, "write": 0}
        assert tick["destage"]["done_ios"] == tick["destage"]["queued_ios"] > 0
