# SPDX-License-Identifier: GPL-2.0-only
"""The command line against a real bcache: what it says is what the kernel says.

I/O: the guest.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbgate import units
from ebbgate.cli import main
from ebbgate.knobs.catalog import KNOBS
from ebbgate.knobs.knob import Knob, ValueForm, parse_value
from ebbgate.knobs.places import knob_path
from ebbgate.model.volume import Device, Kind, Volume
from tests.bench.product import Product
from tests.lab import fio
from tests.lab.bcache_stack import BcacheStack
from tests.lab.session import Session
from tests.lab.wait import wait_until

# Its sleep cannot be interrupted, and the test has to end one day.
AT_ONCE = {"writeback_delay": 0}


@pytest.fixture(scope="module")
def stack(guest: Session) -> Iterator[BcacheStack]:
    with BcacheStack(guest, settings=AT_ONCE) as made:
        yield made


@pytest.fixture(scope="module")
def product(guest: Session, stack: BcacheStack) -> Iterator[Product]:
    with Product(guest, mode="enforce") as running:
        yield running


BCACHE_KNOBS = [knob for knob in KNOBS if Kind.BCACHE in knob.kinds and not knob.per_disk]


def write_some(guest: Session, stack: BcacheStack) -> None:
    job = fio.Job(stack.device, "randwrite", "64k", options={"io_size": "16m"})
    fio.run(guest, job, seed=3)


def as_json(product: Product, *words: str) -> Any:
    return json.loads(product.cli(*words, "--json"))


@pytest.mark.parametrize("knob", BCACHE_KNOBS, ids=lambda knob: knob.name)
def test_a_stock_kernel_has_each_knob_as_in_the_catalogue(
    guest: Session, stack: BcacheStack, knob: Knob
) -> None:
    device = Device("vda", (1, 0), 1)
    volume = Volume(stack.volume, Kind.BCACHE, (1, 1), 1, device, (device,), stack.set_uuid)
    path = knob_path(volume, knob.name)
    assert path is not None
    if not knob.readable:
        assert guest.run(["stat", "-c", "%A", path]).stdout.strip() == "--w-------"
        return
    text = guest.read(path)
    value = parse_value(knob.form, text)
    assert value.isalpha() or "-" in value if knob.form is ValueForm.CHOICE else value.isdigit()
    if knob.form is ValueForm.PLAIN:
        assert value == text, "a rounded value must be in the table as such"


def test_status_matches_the_kernel(guest: Session, stack: BcacheStack, product: Product) -> None:
    (volume,) = as_json(product, "status", stack.volume)["volumes"]
    assert (volume["mode"], volume["live"]) == ("enforce", True)
    assert volume["cache_mode"] == "writeback"
    assert (volume["backing"]["name"], volume["backing"]["rotational"]) == (stack.hdd, True)
    assert volume["backing"]["devno"] == stack.dev_t("hdd")
    assert [cache["devno"] for cache in volume["caches"]] == [stack.dev_t("ssd")]
    buckets = int(guest.read(f"/sys/block/{stack.ssd}/bcache/nbuckets"))
    bucket_bytes = units.parse_hprint(guest.read(f"/sys/fs/bcache/{stack.set_uuid}/bucket_size"))
    assert volume["cache_bytes"] == buckets * bucket_bytes


@pytest.mark.full
def test_status_has_the_miss_ratio_curve_of_a_read_set(
    guest: Session, stack: BcacheStack, product: Product
) -> None:
    for _ in range(5):
        fio.run(guest, fio.Job(stack.device, "read", "1m", options={"size": "64m"}), seed=1)

    def sampled_reads() -> int:
        (volume,) = as_json(product, "status", stack.volume)["volumes"]
        found: int = volume["miss_ratio"]["sampled_reads"]
        return found

    wait_until(lambda: sampled_reads() >= 5 * 64, 30, "all reads to be in the curve")
    (volume,) = as_json(product, "status", stack.volume)["volumes"]
    curve = volume["miss_ratio"]
    sizes = dict(zip(curve["sizes_bytes"], curve["miss_ratios"], strict=True))
    assert sizes[volume["cache_bytes"]] == pytest.approx(0.2, abs=0.02)
    assert "% with this one" in " ".join(product.cli("explain", stack.volume).split())


def test_doctor_sees_every_signal_and_what_an_event_costs(
    guest: Session, stack: BcacheStack, product: Product
) -> None:
    load = guest.spawn(f"while :; do dd if={stack.device} of=/dev/null bs=4k count=50; done")
    try:
        found = as_json(product, "doctor", "--measure", "2")
    finally:
        load.kill(signal.SIGKILL)
    signals = found["probe"]["signals"]
    # What device-mapper gives is there once its modules are.
    assert {word for name, word in signals.items() if not name.startswith("dm_")} == {"ok"}
    programs = {program["name"]: program["runs"] for program in found["cost"]["programs"]}
    assert programs["block_bio_queue"] > 0
    assert found["cost"]["ns_per_run"] > 0
    # The lab's hard disk is set up as it should be; only defaults of the kernel remain to be said.
    assert {row["id"] for row in found["volumes"][0]["advice"]} <= {"EBB-205"}
    assert guest.read("/proc/sys/kernel/bpf_stats_enabled") == "0"


def test_a_mode_is_carried_out_and_leaving_enforce_puts_every_knob_back(
    guest: Session, stack: BcacheStack, product: Product
) -> None:
    write_some(guest, stack)
    wait_until(stack.changed_knobs, 30, "the first knob to be tuned")
    assert product.cli("advise", stack.device) == f"{stack.volume}: mode advise\n"
    wait_until(lambda: not stack.changed_knobs(), 30, "every knob to be back")
    assert product.cli("enforce", stack.volume) == f"{stack.volume}: mode enforce\n"


def test_a_recording_of_a_real_load_can_be_replayed_elsewhere(
    guest: Session,
    stack: BcacheStack,
    product: Product,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_some(guest, stack)
    recording = tmp_path / "recording.jsonl"
    recording.write_text(product.cli("record", stack.device, "--seconds", "3"))
    capsys.readouterr()
    assert main(["replay", str(recording), "--json"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert replayed["damaged"] == []
    assert replayed["length_ns"] >= 2.5 * units.NS_PER_S
    assert replayed["decisions"]
    assert stack.volume in replayed["origin"][0]


@pytest.mark.full
def test_after_kill_9_status_warns_and_restore_puts_every_knob_back(
    guest: Session, stack: BcacheStack, product: Product
) -> None:
    # The last test of this file: it ends the daemon that all of them share.
    write_some(guest, stack)
    wait_until(stack.changed_knobs, 30, "the first knob to be tuned")
    product.stop(signal.SIGKILL)
    # The lab names a knob by its path below the volume's folder.
    changed = {name.rpartition("/")[2] for name in stack.changed_knobs()}
    left = as_json(product, "status")["daemon"]["left_behind"]
    assert changed <= {row["knob"] for row in left}
    restored = as_json(product, "restore")
    # A knob may have had its original again when the daemon died.
    outcomes = {row["knob"]: row["outcome"] for row in restored["knobs"]}
    assert set(outcomes.values()) <= {"changed", "unchanged"}
    assert {outcomes[knob] for knob in changed} == {"changed"}
    # The kernel's own rate loop goes on from the rate that was put back.
    assert set(stack.changed_knobs()) <= {"writeback_rate"}
    assert as_json(product, "restore")["knobs"] == []
