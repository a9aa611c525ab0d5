# SPDX-License-Identifier: GPL-2.0-only
"""The dashboard in a real browser, of a real daemon that tunes a real bcache under a load."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.bench import web
from tests.bench.gap_drain import QUIET_CACHE
from tests.bench.product import Product
from tests.browser import node
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.errors import LabError, NoLab
from tests.lab.guest import Guest

TIMEOUT_S = 900
# The emulated server takes seconds for what takes it none.
PATIENCE_MS = 120_000
GAP_S = 3.0
# The second one is what there is an advice about that can be applied.
SETTINGS = {**QUIET_CACHE, "writeback_percent": 40}


@pytest.fixture(scope="module")
def seen() -> Iterator[web.Web]:
    """A volume under bursts and gaps, tuned, and its dashboard on the host's loopback."""
    port = web.free_port()
    try:
        with ExitStack() as until_end:
            guest = until_end.enter_context(Guest(forwards={web.PORT: port}))
            stack = until_end.enter_context(BcacheStack(guest, settings=SETTINGS))
            stack.expect_changed("writeback_rate")
            product = until_end.enter_context(Product(guest))
            served = until_end.enter_context(web.Web(guest, product.site, port))
            # Last: under load it all takes twice as long to start.
            until_end.enter_context(loaded(stack))
            yield served
    except NoLab as reason:
        without_lab(reason)


@contextmanager
def loaded(stack: BcacheStack) -> Iterator[None]:
    """Some seconds of reads and writes, then nothing for a while, over and over."""
    over = threading.Event()
    reads: dict[str, str | int] = {"offset": "1G", "size": "900M", "runtime": 4, "time_based": 1}
    writes: dict[str, str | int] = {"size": "256M", "runtime": 4, "time_based": 1, "rate_iops": 60}

    def turns() -> None:
        seed = 0
        with suppress(LabError):
            while not over.is_set():
                seed += 1
                jobs = [
                    fio.Job(stack.device, "randread", "4k", options=reads),
                    fio.Job(stack.device, "randwrite", "64k", options=writes),
                ]
                fio.run(stack.session, *jobs, seed=seed)
                over.wait(GAP_S)

    thread = threading.Thread(target=turns)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(120)


@pytest.mark.timeout(TIMEOUT_S + 300)
def test_an_administrator_sees_why_and_takes_over(seen: web.Web, tmp_path: Path) -> None:
    told = {
        "EBBGATE_URL": seen.url,
        "EBBGATE_TOKEN": seen.token,
        "EBBGATE_PATIENCE_MS": str(PATIENCE_MS),
    }
    node.check("lab", told, tmp_path, TIMEOUT_S)
