# SPDX-License-Identifier: GPL-2.0-only
"""Two bcache volumes that are registered in the other order: what was chosen goes with the volume.

The kernel numbers bcache devices in the order of registration. Each test proves on a real kernel
that the mode and the set value of volume A, first bcache0, never become those of volume B, which
has that name next: not while A is absent, and not while A is bcache1, where they are in force.
I/O: the guest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from tests.bench.product import STATE_DIR, Product
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session

pytestmark = pytest.mark.full

_KNOB: Final = "sequential_cutoff"
_FIRST: Final = "bcache0"
_SECOND: Final = "bcache1"
_OF_A: Final = "1.0M"
"""What a person sets through ebbgate, as the kernel prints it."""
_OF_B: Final = "2.0M"
"""What B's administrator has set, at each registration."""
_KERNELS_OWN: Final = "4.0M"


@dataclass(frozen=True, slots=True)
class Pair:
    """Volume A, to be enforced with a set cutoff, and volume B, for which nobody chose anything."""

    a: BcacheStack
    b: BcacheStack

    def names(self) -> tuple[str, str]:
        return self.a.volume, self.b.volume

    def cutoffs(self) -> tuple[str, str]:
        return self.a.knob(_KNOB), self.b.knob(_KNOB)

    def disassemble(self) -> None:
        for stack in (self.a, self.b):
            stack.disassemble()


@pytest.fixture
def pair(guest: Session) -> Iterator[Pair]:
    """Both volumes, A first; A's choices are saved, and the daemon that took them has ended."""
    guest.run(["rm", "-rf", STATE_DIR])
    settings = {_KNOB: 2 << 20}
    with (
        BcacheStack(guest) as a,
        BcacheStack(guest, hdd="hdd1", ssd="ssd1", settings=settings) as b,
    ):
        made = Pair(a, b)
        for stack in (a, b):
            stack.expect_changed("writeback_rate")
        assert made.names() == (_FIRST, _SECOND)
        with Product(guest, mode="advise") as product:
            product.cli("enforce", _FIRST)
            product.cli("set", _FIRST, _KNOB, "1MiB")
            product.wait_until(lambda: made.cutoffs() == (_OF_A, _OF_B), 30, "the set value")
        assert made.cutoffs() == (_KERNELS_OWN, _OF_B)
        yield made
    guest.run(["rm", "-rf", STATE_DIR])


def modes(product: Product) -> dict[str, str]:
    volumes = json.loads(product.cli("status", "--json"))["volumes"]
    return {each["volume"]: each["mode"] for each in volumes}


def test_the_choices_of_a_volume_go_with_it_to_its_other_name(guest: Session, pair: Pair) -> None:
    pair.disassemble()
    for stack in (pair.b, pair.a):
        stack.reassemble()
    assert pair.names() == (_SECOND, _FIRST)
    with Product(guest, mode="advise") as product:
        product.wait_until(lambda: pair.cutoffs() == (_OF_A, _OF_B), 30, "the value on bcache1")
        assert modes(product) == {_SECOND: "enforce", _FIRST: "advise"}
        moved = f"{_SECOND}: this volume was {_FIRST} before; what was chosen for it is in force:"
        assert f"{moved} mode enforce, {_KNOB} 1048576" in product.log()
        assert set(pair.b.changed_knobs()) <= {"writeback_rate"}
    assert pair.cutoffs() == (_KERNELS_OWN, _OF_B)


def test_nothing_of_an_absent_volume_is_applied_to_the_one_that_has_its_name(
    guest: Session, pair: Pair
) -> None:
    pair.disassemble()
    pair.b.reassemble()
    assert pair.b.volume == _FIRST
    with Product(guest, mode="advise") as product:
        other = f"{_FIRST}: another volume had this name before; what was chosen for that one is"
        product.wait_until(lambda: other in product.log(), 30, other)
        assert modes(product) == {_FIRST: "advise"}
        # The running daemon finds A by itself.
        pair.a.reassemble()
        assert pair.a.volume == _SECOND
        product.wait_until(lambda: pair.cutoffs() == (_OF_A, _OF_B), 30, "the value on bcache1")
        product.wait_until(lambda: modes(product).get(_SECOND) == "enforce", 30, "the mode")
        assert modes(product)[_FIRST] == "advise"
        assert set(pair.b.changed_knobs()) <= {"writeback_rate"}
    assert pair.cutoffs() == (_KERNELS_OWN, _OF_B)
