# SPDX-License-Identifier: GPL-2.0-only
"""Makes recordings in the lab, of real caches: python -m tests.replay.recorded [NAME...]

I/O: boots a guest, writes NAME.jsonl beside this file. As with the simulation's, a recording stays
as it is until the protocol or the load changes; then its golden text is reviewed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.bench.gap_drain import OFF, QUIET_CACHE, Foreground, Pieces
from tests.bench.product import PROBE, PYTHON, Product
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack
from tests.lab.guest import Guest
from tests.lab.session import Session

FOLDER = Path(__file__).parent
_PIECES = Pieces(kib=64, dirty_mib=200, range_mib=256)


@contextmanager
def recording(
    product: Product, stack: BcacheStack | DmCacheStack, name: str, *options: str
) -> Iterator[None]:
    """`ebbgate record` beside whatever happens; its output becomes NAME.jsonl."""
    argv = [PYTHON, "-m", "ebbgate", "record", stack.volume, *options]
    env = {"PYTHONPATH": str(product.site), "EBBGATE_PROBE": str(PROBE)}
    process = stack.session.spawn(argv, env=env)
    try:
        yield
    finally:
        # Each record is written whole; a background process of the guest does not hear SIGINT.
        process.kill(signal.SIGTERM)
        process.wait(30)
    (FOLDER / f"{name}.jsonl").write_text(process.stdout())
    print(f"{name}: {len(process.stdout().splitlines())} lines", file=sys.stderr)


def bursts(stack: BcacheStack | DmCacheStack, name: str, *options: str) -> None:
    """Record bursts of reads over pieces of 64 KiB, destaged by the daemon."""
    with Foreground(stack, 1, *options) as foreground:
        foreground.fill(_PIECES)
        with Product(stack.session) as product, recording(product, stack, name, "--pace", "100ms"):
            foreground.finish()


def gap_drain(session: Session) -> None:
    """Bursts of reads with gaps of 1.5 s on bcache."""
    with BcacheStack(session, settings={**QUIET_CACHE, **OFF, "sequential_cutoff": 0}) as stack:
        stack.expect_changed("writeback_rate")
        bursts(stack, "lab-gap-drain", "--bursts", "4", "--reads", "60", "--gap-s", "1.5")


def mixed_stream(session: Session) -> None:
    """A write stream alone, then random writes beside another, under the kernel's own settings."""
    with BcacheStack(session) as stack:
        stack.expect_changed("writeback_rate")
        stream = fio.Job(stack.device, "write", "256k", "stream", {"size": "160M"})
        again = fio.Job(
            stack.device, "write", "256k", "again", {"offset": "1G", "size": "120M", "rate": "24M"}
        )
        random = fio.Job(
            stack.device, "randwrite", "16k", "random", {"size": "800M", "io_size": "12M"}
        )
        with recording(Product(session), stack, "lab-mixed-stream"):
            fio.run(session, stream, seed=2)
            fio.run(session, again, random, seed=3)


def dm_gap_drain(session: Session) -> None:
    """Bursts of reads with gaps of 3 s on LVM's dm-cache, whose kernel waits for one of them."""
    with DmCacheStack(session) as stack:
        bursts(stack, "lab-dm-gap-drain", "--bursts", "5", "--reads", "60", "--gap-s", "3")


RECORDINGS: Mapping[str, Callable[[Session], None]] = {
    "lab-gap-drain": gap_drain,
    "lab-mixed-stream": mixed_stream,
    "lab-dm-gap-drain": dm_gap_drain,
}


def main() -> None:
    """Make the recordings that are named, or all."""
    wanted = sys.argv[1:] or list(RECORDINGS)
    with Guest() as guest:
        for name in wanted:
            RECORDINGS[name](guest)


if __name__ == "__main__":
    main()
