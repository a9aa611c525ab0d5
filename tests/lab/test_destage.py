# SPDX-License-Identifier: GPL-2.0-only
"""The main job on a real bcache: gaps drain, bursts do not, and nothing stays behind.

Leaving a stack compares every knob with its original, so each test here also proves the restore.
I/O: the guest.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.bench import faults, gap_drain
from tests.bench.product import POLICIES, STATE_DIR, Product
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.guest import CHECKOUT
from tests.lab.kernel_matrix import needs, on_kernels
from tests.lab.session import Session

GATE_KNOBS = (
    "writeback_percent",
    "writeback_rate_update_seconds",
    "writeback_delay",
    "cache/internal/idle_max_writeback_rate",
)


@pytest.fixture
def stack(guest: Session) -> Iterator[BcacheStack]:
    with BcacheStack(guest) as made:
        # The kernel's own controller moves it.
        made.expect_changed("writeback_rate")
        yield made


def logged(product: Product, text: str, timeout_s: float = 30) -> None:
    product.wait_until(lambda: text in product.log(), timeout_s, f"the daemon to log {text!r}")


@on_kernels("bcache: gaps drain", "trixie")
def test_a_gap_drains_more_than_stock_ever_does(guest: Session) -> None:
    needs(guest, "volume", "class")
    rhythm = gap_drain.Rhythm(bursts=8, learning=0)
    ours = gap_drain.measure_pieces(guest, LARGE, "mq-deadline", "ebbgate", 1, rhythm)
    assert ours["dirty_mib"] >= 400, "something drained before the first gap"
    # Stock has 11 to 16 MiB, depending on its control loop: `make bench S=gap-drain`.
    assert ours["drained_mib"] >= 40


@pytest.mark.parametrize("state", ["destage", pytest.param("wait", marks=pytest.mark.full)])
def test_a_killed_daemon_leaves_no_knob_and_no_data_behind(guest: Session, state: str) -> None:
    found = faults.one(guest, state, print)
    assert found["touched"] >= 1, "nothing was tuned, so nothing was proved"
    assert (found["left"], found["bad_data"]) == (0, 0)


def test_advise_decides_and_touches_nothing(guest: Session, stack: BcacheStack) -> None:
    with Product(guest, mode="advise") as product:
        fio.run(guest, gap_drain.fill_job(stack.device, SMALL), seed=2)
        logged(product, "idle_destage: destage")
        assert "[advise: not applied]" in product.log()
        assert set(stack.changed_knobs()) <= {"writeback_rate"}


@pytest.mark.full
def test_policy_files_are_followed_without_a_restart(guest: Session, stack: BcacheStack) -> None:
    with Product(guest) as product:
        fio.run(guest, gap_drain.fill_job(stack.device, SMALL), seed=2)
        product.wait_until(lambda: stack.changed_knobs().keys() & set(GATE_KNOBS), 30, "tuning")
        guest.check(f"mkdir -p {POLICIES}; cp {CHECKOUT}/policies/observe-only.yaml {POLICIES}")
        logged(product, f"{stack.volume}: policy observe-only")
        product.wait_until(
            lambda: set(stack.changed_knobs()) <= {"writeback_rate"}, 30, "every knob to be back"
        )
        guest.check(f"echo 'strategis: []' >> {POLICIES}/observe-only.yaml")
        logged(product, "the last valid ones apply")
        assert f"{POLICIES}/observe-only.yaml:" in product.cli("status")
        assert set(stack.changed_knobs()) <= {"writeback_rate"}
        guest.check(f"rm -r {POLICIES}; kill -HUP {product.pid}")
        logged(product, f"{stack.volume}: policy adaptive")
        product.wait_until(lambda: stack.changed_knobs().keys() & set(GATE_KNOBS), 30, "tuning")


def test_a_dead_probe_means_unknown_signals_until_it_is_back(
    guest: Session, stack: BcacheStack
) -> None:
    with Product(guest) as product:
        fio.run(guest, gap_drain.fill_job(stack.device, SMALL), seed=2)
        guest.check("pkill -9 -x ebbgate-probe")
        logged(product, "the probe ended")
        logged(product, "idle_destage: unknown: the load is unknown")
        product.wait_until(
            lambda: "unknown" not in product.last_decision(), 60, "the probe to be back"
        )


@pytest.mark.full
def test_a_probe_that_is_stopped_is_started_again(guest: Session, stack: BcacheStack) -> None:
    with Product(guest) as product:
        fio.run(guest, gap_drain.fill_job(stack.device, SMALL), seed=2)
        guest.check("pkill -STOP -x ebbgate-probe")
        logged(product, "idle_destage: unknown: the load is unknown")
        logged(product, "the probe follows volumes and has sent nothing for 30 s", 60)
        product.wait_until(
            lambda: "unknown" not in product.last_decision(), 60, "the probe to be back"
        )


def test_the_daemon_survives_a_volume_that_goes_away(guest: Session) -> None:
    product = Product(guest)
    try:
        with BcacheStack(guest) as stack:
            # They go with the device, changed as they are.
            stack.expect_changed("writeback_rate", *GATE_KNOBS)
            product.start()
        # The stack took its volume down under the running daemon.
        logged(product, f"{stack.volume}: gone or changed")
        assert product.daemon is not None
        assert product.daemon.poll() is None
    finally:
        log = product.stop(signal.SIGTERM)
    assert "Traceback" not in log


@pytest.mark.full
def test_a_bcache_volume_that_was_registered_again_keeps_the_kernel_s_values(
    guest: Session,
) -> None:
    guest.run(["rm", "-rf", STATE_DIR])
    with BcacheStack(guest) as stack:
        product = Product(guest)
        with product:
            fio.run(guest, gap_drain.fill_job(stack.device, SMALL), seed=9)
            product.wait_until(
                lambda: stack.knob("writeback_percent") == "40" or None, 60, "the gate"
            )
            product.stop(signal.SIGKILL)
        delay = stack.knob("writeback_delay")
        assert delay == "0"
        again = f"echo 1 > /sys/block/{stack.volume}/bcache/stop; sleep 2"
        guest.check(f"{again}; echo /dev/{stack.hdd} > /sys/fs/bcache/register", timeout_s=60)
        product.wait_until(
            lambda: stack.knob("writeback_delay") == "30" or None, 30, "the kernel's own"
        )
        stack.set_knob("writeback_delay", 0)
        assert "created again" in " ".join(product.cli("restore").split())
        assert stack.knob("writeback_delay") == "0"
        stack.set_knob("writeback_delay", 30)


LARGE = gap_drain.Pieces(kib=64, dirty_mib=420, range_mib=512)
SMALL = gap_drain.Pieces(kib=64, dirty_mib=96, range_mib=256)
