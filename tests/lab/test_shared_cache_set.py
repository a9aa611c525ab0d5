# SPDX-License-Identifier: GPL-2.0-only
"""Two volumes of one cache set, which share its knobs, on a real bcache. I/O: the guest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.bench.product import STATE_DIR, Product
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session
from tests.lab.wait import wait_until

_KNOB: Final = "idle_max_writeback_rate"
_LOOKS_S: Final = 3
"""Time for several looks at all knobs."""


@contextmanager
def second_volume(guest: Session, stack: BcacheStack) -> Iterator[str]:
    """Another volume of the same cache set; it never has dirty data."""
    disk = guest.device("hdd1")
    folder = f"/sys/block/{disk}/bcache"
    guest.check(["make-bcache", "-B", f"/dev/{disk}", "--wipe-bcache", "--writeback"])
    if guest.resolve(folder) is None:
        guest.write("/sys/fs/bcache/register", f"/dev/{disk}")
    real = wait_until(lambda: guest.resolve(f"{folder}/dev"), 20, "the second volume")
    guest.write(f"{folder}/attach", stack.set_uuid)
    try:
        yield real.rpartition("/")[2]
    finally:
        guest.write(f"{folder}/stop", "1")
        wait_until(lambda: guest.resolve(folder) is None, 60, "the second volume to be gone")
        guest.write(f"/dev/{disk}", "\0" * 65536)


def owners(product: Product) -> dict[str, str]:
    """Who has written the knob last, by volume."""
    volumes = json.loads(product.cli("status", "--json"))["volumes"]
    return {each["volume"]: each["knobs"][_KNOB]["owner"] for each in volumes}


@pytest.mark.full
def test_what_is_set_for_one_volume_leaves_the_other_tuned(guest: Session) -> None:
    guest.run(["rm", "-rf", STATE_DIR])
    with BcacheStack(guest) as stack, second_volume(guest, stack) as other:
        stack.expect_changed("writeback_rate")
        tuned = dict.fromkeys((stack.volume, other), "ebbgate")

        def value() -> str:
            return stack.knob(f"cache/internal/{_KNOB}")

        before = value()
        with Product(guest) as product:
            product.wait_until(lambda: owners(product) == tuned, 60, "both to be tuned")
            assert (before, value()) == ("1", "0")
            product.cli("set", stack.volume, _KNOB, "1")
            product.wait_until(lambda: value() == "1", 30, "the set value")
            time.sleep(_LOOKS_S)
            assert owners(product) == tuned
            product.cli("release", stack.volume, _KNOB)
            product.wait_until(lambda: value() == "0", 30, "the tuned value")
            time.sleep(_LOOKS_S)
            assert owners(product) == tuned
        assert value() == before
