# SPDX-License-Identifier: GPL-2.0-only
"""A PostgreSQL on a cached volume, and what may move its tables into the cache meanwhile.

For the scenarios that need one. A place is a kind of cache and a file system: `bcache/ext4`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.gap_drain import QUIET_CACHE
from tests.bench.product import POLICIES, PYTHON, REPO, SITE, Product
from tests.lab import host
from tests.lab.bcache_stack import BcacheStack
from tests.lab.devices import MIB, Device, Ssd, as_sold, control_path
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.hdd_control import HddControl
from tests.lab.postgres import PostgresServer, Tables, cluster, transactions_per_s

GUEST_SCRIPTS = Path(__file__).parent / "guest"
SCRIPT_ENV = {"PYTHONPATH": f"{SITE}:{REPO}"}
FOLDER = "/run/database"
DATA = f"{FOLDER}/data"
TRACES = "/sys/kernel/tracing/instances"
POLICY = f"{POLICIES}/promote.yaml"
TABLES = Tables(24, 48)
CACHE_MIB = 384
CLIENTS = 4
MEMORY_MIB = 24
"""For the server with all its pages of files: four tables do not fit."""
SHARES = {f"fixed-{share}": share for share in (0.2, 0.4, 0.8)}
"""Arms that move files as published, with their share of the time."""
PERIOD_S = 20
"""Of promote_hot: a hot set lasts for minutes here, and the cache is small."""
KINDS = ("bcache", "dm-cache")
FILESYSTEMS = {
    "ext4": "mkfs.ext4 -q -F -m 0 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0",
    "xfs": "mkfs.xfs -q -f -K",
}
PLACES = tuple(f"{kind}/{filesystem}" for kind in KINDS for filesystem in FILESYSTEMS)
Stack = BcacheStack | DmCacheStack


@dataclass(frozen=True, slots=True)
class Served:
    """A server with its tables on a volume. `files`: of each table. `product`: the daemon."""

    stack: Stack
    server: PostgresServer
    files: Mapping[str, str]
    product: Product


@dataclass(frozen=True, slots=True)
class Phase:
    """What was measured in a phase: transactions in each second, reads of the hard disk."""

    per_s: Sequence[float]
    disk_reads: int


def devices() -> tuple[Device, ...]:
    """Return a SATA disk, and an SSD for each kind of cache: LVM keeps some of it to itself."""
    ssds = Ssd("ssd0", size_bytes=CACHE_MIB * MIB), Ssd("ssd1", size_bytes=2 * CACHE_MIB * MIB)
    return as_sold("hdd0"), *ssds


def stack_of(guest: Guest, kind: str) -> Stack:
    """Describe a volume of this kind."""
    if kind == "bcache":
        return BcacheStack(guest, settings=QUIET_CACHE)
    # 8 MiB of a cachevol are for its metadata.
    return DmCacheStack(guest, ssd="ssd1", cache_bytes=(CACHE_MIB + 8) * MIB)


@contextmanager
def served(guest: Guest, place: str, arm: str) -> Iterator[Served]:
    """Serve the tables from a fresh volume, of which the cache has nothing.

    A daemon runs in every arm, since it needs processor time, which reads wait for here; it
    promotes in `ebbgate`, and only watches in all others.
    """
    kind, filesystem = place.split("/")
    with stack_of(guest, kind) as stack:
        stack.expect_changed("writeback_rate")
        with (
            database(guest, stack, filesystem),
            PostgresServer(guest, DATA, memory_mib=MEMORY_MIB) as server,
            daemon(guest, arm) as product,
        ):
            names = TABLES.names
            files = dict(zip(names, server.files(names), strict=True))
            mover: AbstractContextManager[None] = nullcontext()
            if arm in SHARES:
                mover = moving(guest, stack, SHARES[arm], tuple(files.values()))
            with mover:
                yield Served(stack, server, files, product)


@contextmanager
def database(guest: Guest, stack: Stack, filesystem: str) -> Iterator[None]:
    """Mount a file system on the volume with the cluster, past the cache."""
    mount = f"mount {stack.device} {FOLDER}"
    with full_speed(guest), past_cache(stack):
        guest.check(f"modprobe {filesystem}; mkdir -p {FOLDER}")
        guest.check(f"{FILESYSTEMS[filesystem]} {stack.device} && {mount}", timeout_s=120)
        copy_cluster(guest)
        # With the file system its pages go out of the memory.
        guest.check(["umount", FOLDER], timeout_s=120)
    guest.check(mount)
    try:
        yield
    finally:
        guest.check(["umount", FOLDER], timeout_s=60)


def copy_cluster(guest: Guest) -> None:
    """Put the cluster into the folder, as the server's user's."""
    source = guest.share / "cluster"
    if not source.exists():
        host.run(["cp", "-a", "--reflink=auto", cluster(TABLES), source])
    guest.check(f"cp -a {source} {DATA} && chown -R postgres: {DATA} && sync", timeout_s=600)


@contextmanager
def full_speed(guest: Guest) -> Iterator[None]:
    """Let the hard disk be as fast as its host."""
    control = HddControl(control_path(guest.folder, "hdd0"))
    before, control.scale = control.scale, 0.0
    try:
        yield
    finally:
        control.scale = before
        control.close()


@contextmanager
def past_cache(stack: Stack) -> Iterator[None]:
    """Have writes go past the cache: all requests bypass bcache, none is a block of dm-cache."""
    if isinstance(stack, BcacheStack):
        knob, past, usual = "sequential_cutoff", 1, str(4 * MIB)
    else:
        knob, past = "volume:queue/max_sectors_kb", 32
        usual = stack.knob(knob)
    stack.set_knob(knob, past)
    try:
        yield
    finally:
        stack.set_knob(knob, usual)


@contextmanager
def daemon(guest: Guest, arm: str) -> Iterator[Product]:
    """Run ebbgate as this arm has it."""
    if arm != "ebbgate":
        with Product(guest, mode="advise") as product:
            yield product
        return
    guest.check(["mkdir", "-p", POLICIES])
    guest.put_file(POLICY, policy_text(f"{DATA}/base/*/*"))
    try:
        with Product(guest) as product:
            yield product
    finally:
        guest.check(["rm", POLICY])


def policy_text(files: str) -> str:
    """Return a policy that promotes, with the pattern of the files that it knows."""
    promote = f"promote_hot: {{files: '{files}', period: {PERIOD_S}s, cache_share_max: 50%}}"
    strategies = ("idle_destage", "stream_bypass", promote)
    listed = "\n".join(f"  - {each}" for each in strategies)
    return f"version: 1\nname: promote\nstrategies:\n{listed}\n"


@contextmanager
def moving(guest: Guest, stack: Stack, share: float | None, files: Sequence[str]) -> Iterator[None]:
    """Move hot files as published, for a share of the time; None: all of them, and at once."""
    words = () if share is None else ("--share", str(share))
    argv = [PYTHON, str(GUEST_SCRIPTS / "file_mover.py"), *words, *cache_options(stack), *files]
    mover = guest.spawn(argv, env=SCRIPT_ENV)
    try:
        yield
    finally:
        mover.kill()
        mover.wait(30)
        guest.run(f"rmdir {TRACES}/misses-{mover.pid}")


def cache_options(stack: Stack) -> tuple[str, ...]:
    """Return the options that tell the guest's scripts what kind of cache there is."""
    if isinstance(stack, BcacheStack):
        return "--backing", stack.dev_t("hdd")
    return "--backing", stack.dev_t("origin"), "--block", str(stack.block_bytes)


def run_phase(
    guest: Guest,
    where: Served,
    names: Sequence[str],
    seconds: int,
    seed: int,
) -> Phase:
    """Have the clients read rows of these tables."""
    path = f"/sys/dev/block/{where.stack.dev_t('hdd')}/stat"
    before = int(guest.read(path).split()[0])
    scripts = [TABLES.select(name) for name in names]
    load = where.server.load(scripts, clients=CLIENTS, seconds=seconds, seed=seed)
    done = load.wait(seconds + 120).check()
    return Phase(transactions_per_s(done.stderr), int(guest.read(path).split()[0]) - before)


def promotion(where: Served) -> dict[str, Any]:
    """Return what the daemon says of promote_hot (`PromotionStatus`)."""
    stack = where.stack
    volume = stack.volume if isinstance(stack, BcacheStack) else stack.name
    return dict(where.product.live(volume)["promotion"])
