# SPDX-License-Identifier: GPL-2.0-only
"""The demo: the same bursts, gaps and stream on a real bcache, stock and then with ebbgate.

I/O: boots a guest, runs the workload twice on a fresh volume each, prints a table. Its errors are
the lab's; demo.py says what they mean.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.bench import web
from tests.bench.burst_figures import figures
from tests.bench.gap_drain import QUIET_CACHE, Foreground, Pieces
from tests.bench.product import FOLDERS, PROBE, PYTHON, REPO, SITE, Product, stage_in_guest
from tests.lab import fio, terminal
from tests.lab.bcache_stack import BcacheStack
from tests.lab.demo_failure import need_space
from tests.lab.demo_screen import Screen, print_table
from tests.lab.demo_watch import Watch
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.session import Session

ARMS = ("stock", "ebbgate")
FILL = Pieces(kib=64, dirty_mib=300, range_mib=512)
STREAM_MIB = 256
CLEAN_TIMEOUT_S = 40.0
SEED = 1

_WRAPPER = f"""#!/bin/sh
export PYTHONPATH={SITE} EBBGATE_PROBE={PROBE}
exec {PYTHON} -m ebbgate {" ".join(FOLDERS)} "$@"
"""


@dataclass(slots=True)
class Result:
    """What one arm gave. `metrics` as in the gap-drain scenario."""

    metrics: dict[str, float] = field(default_factory=dict)
    stream_s: float = 0.0
    after_gaps_mib: float = 0.0
    clean_s: float | None = None
    left_mib: float = 0.0


def main(words: Sequence[str]) -> None:
    """Run the demo with these words of its command line."""
    parser = argparse.ArgumentParser(prog="make demo", description="stock bcache against ebbgate")
    parser.add_argument("--keep", action="store_true", help="stay, with a shell in the guest")
    run(keep=parser.parse_args(words).keep)


def run(*, keep: bool) -> None:
    """Both arms, the table, and with `keep` a shell beside the running daemon."""
    if not PROBE.exists():
        raise NoLab(f"no lab here: {PROBE.relative_to(REPO)} is not built (make probe)")
    need_space()
    screen, port = Screen(), web.free_port()
    with contextlib.ExitStack() as until_end:
        with screen:
            screen.address(f"http://127.0.0.1:{port}")
            screen.phase("booting a stock Debian kernel in QEMU, without KVM")
            guest = until_end.enter_context(Guest(forwards={web.PORT: port}))
            screen.phase(f"Linux {guest.check(['uname', '-r']).strip()}; starting ebbgate-web")
            page = until_end.enter_context(web.Web(guest, stage_in_guest(guest), port))
            screen.phase(f"{page.url} answers")
            results = {arm: measure(guest, arm, screen) for arm in ARMS}
        print_table(screen.console, table(results))
        if keep:
            stay(guest, screen, page)


def measure(guest: Session, arm: str, screen: Screen) -> Result:
    """One arm on a fresh volume."""
    screen.arm(arm)
    screen.phase("a fresh bcache volume: 2 GiB hard disk, 1 GiB SSD")
    # In both arms: the emulated SSD is slow enough to look congested to the kernel, which would
    # then keep an unknown part of the writes out of the cache.
    with BcacheStack(guest, settings=QUIET_CACHE) as stack:
        # The kernel itself moves this one; every other knob must be back when the stack is left.
        stack.expect_changed("writeback_rate")
        screen.phase(f"{FILL.dirty_mib} MiB of random {FILL.kib} KiB writes, while users read")
        with Foreground(stack, SEED) as foreground:
            foreground.fill(FILL)
            with driven(stack, arm, screen):
                screen.phase("bursts and gaps; not counted: the kernel's thread sleeps for 30 s")
                foreground.begin()
                foreground.outlast_delay()
                return workload(stack, foreground, screen)


@contextmanager
def driven(stack: BcacheStack, arm: str, screen: Screen) -> Iterator[None]:
    """The volume under this arm's regime, watched.

    With the kernel's own settings, too, a daemon runs and shows what it sees; it touches nothing.
    """
    mode = "observe" if arm == "stock" else "enforce"
    screen.phase(f"starting ebbgated in {mode}")
    with Product(stack.session, mode=mode) as product:
        assert product.daemon is not None
        log = product.daemon.stderr_path
        with Watch(stack.session, stack.volume, screen, log) as watch:
            yield
        moved = sorted(set(stack.changed_knobs()) - {"writeback_rate"})
        screen.phase(f"{watch.decisions} decisions; stopping ebbgated")
    left = sorted(set(stack.changed_knobs()) - {"writeback_rate"})
    was = f"{len(moved)} knobs were changed ({', '.join(moved) or 'none'})"
    screen.note(f"{was}; not back after the stop: {', '.join(left) or 'none'}")


def workload(stack: BcacheStack, foreground: Foreground, screen: Screen) -> Result:
    """Bursts and gaps over scattered dirty data, a stream, then nothing."""
    result = Result()
    screen.phase("6 bursts of 100 reads, 2.5 s of quiet between them")
    result.metrics = figures(foreground.finish())
    result.after_gaps_mib = stack.dirty_bytes() / 2**20
    screen.phase(f"a stream: {STREAM_MIB} MiB written in sequence")
    options: dict[str, str | int] = {"size": f"{STREAM_MIB}M", "offset": f"{FILL.range_mib}M"}
    stream = fio.run(stack.session, fio.Job(stack.device, "write", "1M", options=options), seed=1)
    result.stream_s = stream.only.runtime_ms / 1000
    screen.phase(f"nothing: how long until the cache is clean? (at most {CLEAN_TIMEOUT_S:.0f} s)")
    result.clean_s = seconds_to_clean(stack)
    result.left_mib = stack.dirty_bytes() / 2**20
    return result


def seconds_to_clean(stack: BcacheStack) -> float | None:
    """Seconds until nothing is dirty; None if that takes longer than the demo waits."""
    start = time.monotonic()
    while (passed_s := time.monotonic() - start) < CLEAN_TIMEOUT_S:
        if stack.dirty_bytes() == 0:
            return passed_s
        time.sleep(0.25)
    return None


def table(results: dict[str, Result]) -> list[tuple[str, str, str]]:
    """Rows of text: name, stock, ebbgate."""
    stock, ours = (results[arm] for arm in ARMS)

    def row(name: str, metric: str, form: str) -> tuple[str, str, str]:
        return name, form.format(stock.metrics[metric]), form.format(ours.metrics[metric])

    left, stream = "still dirty after the bursts", f"stream of {STREAM_MIB} MiB"

    return [
        row("foreground read p50", "p50_ms", "{:.1f} ms"),
        row("foreground read p99", "p99_ms", "{:.1f} ms"),
        row("first request after a gap, median", "first_median_ms", "{:.1f} ms"),
        row("first request after a gap, worst", "first_max_ms", "{:.1f} ms"),
        row("drained in a gap of 2.5 s, median", "drained_mib", "{:.1f} MiB"),
        (left, f"{stock.after_gaps_mib:.0f} MiB", f"{ours.after_gaps_mib:.0f} MiB"),
        (stream, f"{stock.stream_s:.1f} s", f"{ours.stream_s:.1f} s"),
        ("time to clean after that", clean_text(stock), clean_text(ours)),
    ]


def clean_text(result: Result) -> str:
    """`3.1 s`, or how far it was when the demo stopped waiting."""
    if result.clean_s is not None:
        return f"{result.clean_s:.1f} s"
    return f"> {CLEAN_TIMEOUT_S:.0f} s, {result.left_mib:.0f} MiB left"


def stay(guest: Session, screen: Screen, page: web.Web) -> None:
    """A fresh volume with a running daemon, and a shell; all of it ends with the shell."""
    guest.put_file("/usr/local/bin/ebbgate", _WRAPPER)
    guest.check(["chmod", "755", "/usr/local/bin/ebbgate"])
    # Not left with its checks: what a person does to the knobs here is his affair.
    stack = BcacheStack(guest)
    stack.__enter__()
    with Product(guest):
        screen.note(
            f"\nA shell in the guest: {stack.device} is ready and ebbgated runs in enforce. Try:\n"
            f"  ebbgate status; ebbgate explain {stack.volume}\n"
            f"  fio --name=w --filename={stack.device} --rw=randwrite --bs=64k --direct=1"
            " --size=512M --io_size=200M\n"
            f"  cat {stack.sysfs}/dirty_data\n"
            f"In a browser: {page.url}; to change something there: {page.token}\n"
            "exit ends the guest."
        )
        terminal.interact(guest, ["bash", "-l"])
