# SPDX-License-Identifier: GPL-2.0-only
"""A bcache whose backing device is no bare disk: ebbgate finds the SATA disks below it.

Each test proves, on a real kernel, for one stack of layers between bcache and its disks:

- all disks below get the policy's I/O scheduler, and in a gap a shallow queue, while a disk that is
  not below keeps its own;
- dirty data reaches each of these disks in the gap, and the queues are deep again after it;
- `status` and `explain` name the queues, and `doctor` a layer that loses write-back's idle class;
- after a SIGKILL in a gap, `ebbgate restore` gives each disk its own queue and scheduler back, set
  as it was.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from operator import sub
from typing import Final

import pytest

from tests.bench import gap_drain
from tests.bench.product import POLICIES, STATE_DIR, Product
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.devices import MIB, Ssd, as_sold, control_path
from tests.lab.disk_layers import Layer, crypt, linear_volume, multipath, partition, raid1
from tests.lab.errors import NoLab
from tests.lab.guest import Guest
from tests.lab.hdd_control import HddControl
from tests.lab.hdd_queue import AS_SOLD, PLAIN
from tests.lab.knobs import selected
from tests.lab.session import Session
from tests.lab.test_hdd_as_sold import SHALLOW, SHALLOW_DEPTH

_BOTH: Final = ("hdd0", "hdd1")
_DIRTY: Final = gap_drain.Pieces(kib=64, dirty_mib=96, range_mib=256)
_DEPTH: Final = "device/queue_depth"
_SCHEDULER: Final = "queue/scheduler"
_SLOW_FACTOR: Final = 32.0
_EXPIRE: Final = "queue/iosched/read_expire"
_QUEUE: Final = (_DEPTH, _SCHEDULER, "queue/nr_requests", "queue/max_sectors_kb", _EXPIRE)
_STACKS: Final = [
    # What an installer makes of two disks: a mirror of partitions, LVM on it, encrypted.
    pytest.param(_BOTH, (linear_volume, crypt), id="crypt-lvm-raid1"),
    pytest.param(_BOTH, (), id="raid1", marks=pytest.mark.full),
    pytest.param(("hdd0",), (linear_volume,), id="lvm", marks=pytest.mark.full),
    pytest.param(("hdd0",), (linear_volume, crypt), id="crypt-lvm", marks=pytest.mark.full),
]


@pytest.fixture(scope="module")
def sold_guest() -> Iterator[Session]:
    try:
        with Guest([as_sold("hdd0"), as_sold("hdd1", seed=2), Ssd("ssd0")]) as session:
            yield session
    except NoLab as reason:
        without_lab(reason)


@dataclass(frozen=True, slots=True)
class Disks:
    """SATA disks of the guest, by their names in the lab."""

    guest: Session
    names: tuple[str, ...]

    def all(self, attribute: str) -> set[str]:
        """What these disks have in a file of sysfs; of a list of choices, the chosen one."""
        return {value for path, value in self.queues().items() if path.endswith(attribute)}

    def queues(self) -> dict[str, str]:
        """Every setting of their queues."""
        found = self.guest.read_many(
            f"/sys/block/{self.guest.device(name)}/{attribute}"
            for name in self.names
            for attribute in _QUEUE
        )
        return {path: selected(text or "missing") for path, text in found.items()}

    def set(self, attribute: str, value: str) -> None:
        """As a person does, of each."""
        for name in self.names:
            self.guest.check(f"echo {value} > /sys/block/{self.guest.device(name)}/{attribute}")

    def written_bytes(self) -> list[int]:
        """What each has written, by its own count."""
        with self.controls() as pages:
            return [page.counters.write_bytes for page in pages]

    @contextmanager
    def slow(self) -> Iterator[None]:
        """Each write waits for the head, which takes many times as long: a gap lasts minutes."""
        with self.controls() as pages:
            for page in pages:
                page.scale, page.features = _SLOW_FACTOR, PLAIN
            try:
                yield
            finally:
                for page in pages:
                    page.scale, page.features = 1.0, AS_SOLD

    @contextmanager
    def controls(self) -> Iterator[list[HddControl]]:
        """Their own pages."""
        with ExitStack() as stack:
            folder = self.guest.folder
            pages = [HddControl(control_path(folder, name)) for name in self.names]
            yield [stack.enter_context(closing(page)) for page in pages]

    def knobs(self, name: str) -> list[str]:
        """How ebbgate calls this knob of each."""
        return [f"{name}:{self.guest.device(each)}" for each in self.names]


@contextmanager
def layered(guest: Session, disks: Disks, layers: Sequence[Layer]) -> Iterator[BcacheStack]:
    """A bcache on a stack of layers, with a partition of each disk at the bottom."""
    with ExitStack() as below:
        parts = [below.enter_context(partition(guest, guest.device(each))) for each in disks.names]
        top = parts[0] if len(parts) == 1 else below.enter_context(raid1(guest, *parts))
        for layer in layers:
            top = below.enter_context(layer(guest, top))
        guest.name_device("layers", top)
        # The layer itself has no scheduler.
        with BcacheStack(
            guest, hdd="layers", scheduler="none", settings=gap_drain.QUIET_CACHE
        ) as stack:
            stack.expect_changed("writeback_rate")
            yield stack


def queues_turn(product: Product, disks: Disks, depth: str) -> None:
    what = f"a depth of {depth} on all of {', '.join(disks.names)}"
    product.wait_until(lambda: disks.all(_DEPTH) == {depth}, 30, what)


@pytest.mark.parametrize(("names", "layers"), _STACKS)
def test_all_disks_below_the_layers_are_shallow_in_a_gap_and_as_before_afterwards(
    sold_guest: Session, names: tuple[str, ...], layers: tuple[Layer, ...]
) -> None:
    disks = Disks(sold_guest, names)
    disks.set(_EXPIRE, "300")
    others = Disks(sold_guest, tuple(set(_BOTH) - set(names)))
    before, others_before = disks.queues(), others.queues()
    (deep,) = disks.all(_DEPTH)
    sold_guest.check(f"rm -rf {STATE_DIR}; mkdir -p {POLICIES}")
    sold_guest.put_file(f"{POLICIES}/shallow.yaml", SHALLOW)
    with layered(sold_guest, disks, layers) as stack, Product(sold_guest) as product:
        product.wait_until(lambda: disks.all(_SCHEDULER) == {"bfq"}, 30, "bfq on every disk")
        assert disks.all(_DEPTH) == {deep}
        in_a_gap(product, stack, disks)
        assert others.queues() == others_before
        queues_turn(product, disks, deep)
        # This kernel's dm-crypt loses the idle class (tests/lab/test_io_class.py).
        assert ("EBB-110" in product.cli("doctor", stack.volume)) == (crypt in layers)
        with disks.slow():
            fio.run(sold_guest, gap_drain.fill_job(stack.device, _DIRTY), seed=5)
            queues_turn(product, disks, SHALLOW_DEPTH)
            product.stop(signal.SIGKILL)
            assert disks.all(_DEPTH) == {SHALLOW_DEPTH}
        restored = product.cli("restore")
        for knob in (*disks.knobs("queue_depth"), *disks.knobs("scheduler")):
            assert knob in restored
        assert disks.queues() == before
        assert others.queues() == others_before


@pytest.mark.full
def test_the_scheduler_is_that_of_the_multipath_device(sold_guest: Session) -> None:
    """It sends whole requests past the scheduler of its path, which must take the longest ones."""
    guest, disks = sold_guest, Disks(sold_guest, ("hdd0",))
    guest.check(f"rm -rf {STATE_DIR}; mkdir -p {POLICIES}")
    guest.put_file(f"{POLICIES}/shallow.yaml", SHALLOW)
    before = disks.queues()
    with multipath(guest, guest.device("hdd0")) as top:
        guest.name_device("layers", top)
        queue = [f"/sys/block/{top}/{each}" for each in _QUEUE if each != _DEPTH]

        def above() -> dict[str, str]:
            return {
                path: selected(text or "missing") for path, text in guest.read_many(queue).items()
            }

        with BcacheStack(guest, hdd="layers", settings=gap_drain.QUIET_CACHE) as stack:
            stack.expect_changed("writeback_rate")
            above_before = above()
            assert above_before[queue[0]] == "mq-deadline"
            with Product(guest) as product:
                product.wait_until(lambda: above()[queue[0]] == "bfq" or None, 30, "bfq above")
                with disks.slow():
                    fio.run(guest, gap_drain.fill_job(stack.device, _DIRTY), seed=6)
                    queues_turn(product, disks, SHALLOW_DEPTH)
                    paths = disks.queues()
                    product.stop(signal.SIGKILL)
                assert paths == before | {path: SHALLOW_DEPTH for path in paths if _DEPTH in path}
                restored = product.cli("restore")
                assert f"scheduler:{top}" in restored
                assert (above(), disks.queues()) == (above_before, before)


def in_a_gap(product: Product, stack: BcacheStack, disks: Disks) -> None:
    """Dirty data, a gap: the queues are shallow, people are told, and all of it is destaged."""
    # A command takes seconds in the guest, a dozen on a busy host: the gap must outlast two.
    with disks.slow():
        # What is on its way to the disks still counts as dirty: their counts are taken before it.
        written = disks.written_bytes()
        fio.run(stack.session, gap_drain.fill_job(stack.device, _DIRTY), seed=4)
        dirty_bytes = stack.dirty_bytes()
        # A late request closes the gate for a moment, and the queue stays shallow meanwhile.
        product.wait_until(
            lambda: (disks.all(_DEPTH), stack.knob("writeback_percent")) == ({SHALLOW_DEPTH}, "0"),
            *(30, "shallow queues and an open gate"),
        )
        said = json.loads(product.cli("status", "--json", stack.volume))["volumes"][0]["knobs"]
        assert "queue of the disks" in product.cli("explain", stack.volume)
    for knob in disks.knobs("queue_depth"):
        assert (said[knob]["value"], said[knob]["owner"]) == (SHALLOW_DEPTH, "ebbgate")
    product.wait_until(lambda: stack.dirty_bytes() == 0, 60, "all to be written back")
    product.wait_until(
        lambda: min(map(sub, disks.written_bytes(), written)) >= dirty_bytes,
        *(20, "each disk to have written what was dirty"),
    )
    assert dirty_bytes > 64 * MIB, "it was written back before there was a gap"
