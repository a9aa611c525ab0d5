# SPDX-License-Identifier: GPL-2.0-only
"""Two volumes of one cache set, which share its knobs, on a real bcache. I/O: the guest."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest

from tests.bench.faults import keep, load
from tests.bench.gap_drain import Pieces, fill_job
from tests.bench.product import STATE_DIR, Product
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.probe import GuestProbe
from tests.lab.session import Session
from tests.lab.wait import wait_until
from tests.probe_records import Record, of_type

_KNOB: Final = "idle_max_writeback_rate"
_LOOKS_S: Final = 3
"""Time for several looks at all knobs."""
_PIECES: Final = Pieces(kib=64, dirty_mib=48, range_mib=256)
_MORE: Final = Pieces(kib=64, dirty_mib=192, range_mib=512)
"""Enough to be under way for some seconds."""
_OWN: Final = ("writeback_percent", "writeback_delay", "writeback_rate_update_seconds")


@contextmanager
def second_volume(guest: Session, stack: BcacheStack) -> Iterator[str]:
    """Another volume of the same cache set."""
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
        stop(guest, folder)
        guest.write(f"/dev/{disk}", "\0" * 65536)


def stop(guest: Session, folder: str) -> None:
    """Stop a volume, whose folder in sysfs this is, unless it is gone already."""
    if guest.resolve(folder) is not None:
        guest.write(f"{folder}/stop", "1")
    wait_until(lambda: guest.resolve(folder) is None, 60, "the second volume to be gone")


def owners(product: Product) -> dict[str, str]:
    """Who has written the knob last, by volume of the cache set."""
    volumes = json.loads(product.cli("status", "--json"))["volumes"]
    known = (each for each in volumes if _KNOB in each["knobs"])
    return {each["volume"]: each["knobs"][_KNOB]["owner"] for each in known}


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


@pytest.mark.full
def test_a_volume_that_is_detached_under_pressure_has_its_values_and_leaves_the_shared_one(
    guest: Session,
) -> None:
    guest.run(["rm", "-rf", STATE_DIR])
    with BcacheStack(guest) as stack, second_volume(guest, stack) as other, ExitStack() as exits:
        stack.expect_changed("writeback_rate")
        folder = f"/sys/block/{other}/bcache"
        paths = [f"{folder}/{name}" for name in _OWN]
        before, value = guest.read_many(paths), stack.knob(f"cache/internal/{_KNOB}")
        with Product(guest) as product:
            for device in (stack.device, f"/dev/{other}"):
                keep(load(guest, device, "randwrite", "64k", size="1G"), exits)
            lets_out = f"{other}: idle_destage: pressure"
            product.wait_until(lambda: lets_out in product.log(), 60, "pressure")
            exits.close()
            assert guest.read_many(paths) != before
            guest.write(f"{folder}/detach", "1")
            product.wait_until(
                lambda: f"{other}: gone or changed" in product.log(), 90, "the volume to leave"
            )
            product.wait_until(lambda: guest.read_many(paths) == before, 30, "its own values")
            # The one that stays is tuned on, with the knob that both had.
            keep(load(guest, stack.device, "randwrite", "64k", size="1G"), exits)
            time.sleep(_LOOKS_S)
            assert stack.knob(f"cache/internal/{_KNOB}") == "0"
            assert owners(product) == {stack.volume: "ebbgate"}
            exits.close()
            assert "Traceback" not in product.log()
        assert stack.knob(f"cache/internal/{_KNOB}") == value


def let_out(guest: Session, volume: str) -> None:
    """Have the kernel write a volume back at full speed."""
    for name, text in (("delay", "0"), ("percent", "0"), ("running", "1")):
        guest.write(f"/sys/block/{volume}/bcache/writeback_{name}", text)


def follow(probe: GuestProbe, stack: BcacheStack, volume: str, disk: str) -> None:
    """Track a volume of the stack's cache set, with samples of its queue."""
    own, backing = (stack.session.read(f"/sys/block/{name}/dev") for name in (volume, disk))
    devices = f"volume={own} cache={stack.dev_t('ssd')} backing={backing}"
    probe.send(f"track {volume} kind=bcache {devices}")
    probe.wait_for("track", vol=volume)
    probe.send(f"pace {volume} 10000000")


def test_pieces_of_a_volume_that_has_left_are_not_under_way_in_the_other(guest: Session) -> None:
    with BcacheStack(guest) as stack, second_volume(guest, stack) as other:
        stack.expect_changed("writeback_rate", *_OWN)
        for name in (stack.volume, other):
            guest.write(f"/sys/block/{name}/bcache/writeback_running", "0")
        fio.run(guest, fill_job(stack.device, _MORE), seed=1)
        fio.run(guest, fill_job(f"/dev/{other}", _PIECES), seed=1)
        with GuestProbe(guest, "--tick-ms", "100") as probe:
            follow(probe, stack, stack.volume, stack.hdd)
            follow(probe, stack, other, guest.device("hdd1"))
            let_out(guest, other)
            clean = f"/sys/block/{other}/bcache/state"
            wait_until(lambda: guest.read(clean) == "clean", 60, "the other one to be clean")
            assert probe.tick(other)["destage"]["done_ios"] > 500
            # It leaves while pieces of the one that stays are under way all the time.
            let_out(guest, stack.volume)
            probe.wait(lambda records: under_way(records, stack.volume)[-1:] > [8], "pieces")
            probe.send(f"untrack {other}")
            probe.wait_for("untrack", vol=other)
            before = len(under_way(probe.records(), stack.volume))
            stack.wait_clean(120)
            missed = probe.tick(stack.volume)["lost"]["missed"]
            after = under_way(probe.records(), stack.volume)[before:]
        # As in test_probe.py: bcache begins no more than 64 pieces of a volume.
        assert 8 < max(after) <= 68 + missed


def under_way(records: list[Record], volume: str) -> list[int]:
    """Pieces that are read, wait for their turn or are written, by sample."""
    queue = of_type(records, "queue", vol=volume)
    return [each["inflight"] + each["reads"] + each["awaiting_write"] for each in queue]
