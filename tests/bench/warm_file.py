# SPDX-License-Identifier: GPL-2.0-only
"""warm-file: a file in extents of 4 to 64 KiB goes into the cache, and users hardly notice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.product import PYTHON, Product
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.session import Session

MIB = 1 << 20
SCATTERED = str(Path(__file__).parent / "guest" / "scattered_file.py")
FOLDER = "/run/lab/warm"
FILE = f"{FOLDER}/file"
Stack = BcacheStack | DmCacheStack
PAST = {
    BcacheStack: ("sequential_cutoff", 1, 4 * MIB),
    DmCacheStack: ("volume:queue/max_sectors_kb", 32, 1280),
}
"""A knob, the value under which writes go past the cache, and its usual one."""


@contextmanager
def scattered(session: Session, stack: Stack, mib: int, seed: int) -> Iterator[None]:
    """Mount a file system on the volume with such a file, of which the cache has nothing."""
    # Written past the cache: all requests bypass bcache, and none is a whole block of dm-cache.
    knob, past, usual = PAST[type(stack)]
    stack.set_knob(knob, past)
    session.check(
        f"mkfs.ext4 -q -m 0 -E lazy_itable_init=0 {stack.device} {3 * mib + 24}M &&"
        f" mkdir -p {FOLDER} && mount {stack.device} {FOLDER}",
        timeout_s=120,
    )
    try:
        argv = [PYTHON, SCATTERED, FILE, "--mib", str(mib), "--seed", str(seed)]
        session.check(argv, timeout_s=600)
        stack.set_knob(knob, usual)
        yield
    finally:
        session.check(["umount", FOLDER], timeout_s=60)


def missed(session: Session, stack: Stack, offset: int) -> float:
    """Share of reads of the file that the backing device saw: 4 KiB of each 64 KiB."""
    which = "hdd" if isinstance(stack, BcacheStack) else "origin"
    path = f"/sys/dev/block/{stack.dev_t(which)}/stat"
    before = int(session.read(path).split()[0])
    argv = [PYTHON, SCATTERED, FILE, "--read", str(offset)]
    reads = int(session.check(argv, timeout_s=300))
    return (int(session.read(path).split()[0]) - before) / reads


def warm(product: Product, path: str, timeout_s: float) -> dict[str, Any]:
    """Warm a file; return the job when it is over, with the seconds that it took."""
    began = time.monotonic()
    number = json.loads(product.cli("warm", path, "--json"))["requests"][0]["request"]

    def ended() -> dict[str, Any] | None:
        jobs = json.loads(product.cli("jobs", "--json"))["jobs"]
        found: dict[str, Any] = next(job for job in jobs if job["id"] == number)
        return found if found["ended_unix_ns"] else None

    job = product.wait_until(ended, timeout_s, "the warm-up to end")
    seconds = (job["ended_unix_ns"] - job["since_unix_ns"]) / 1e9
    return {**job, "seconds": min(seconds, time.monotonic() - began)}
