# SPDX-License-Identifier: GPL-2.0-only
"""What the doctor says of the lab is what the kept results of the benchmarks say."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

from ebbgate.doctor.advice import advise
from ebbgate.doctor.model import Drive
from tests.house_rules import REPO
from tests.unit.doctor.test_advice_drives import CACHED, MEASURED, SATA, facts
from tests.unit.doctor.test_advice_throttling import throttled_facts, throttling

Runs = list[dict[str, float]]
NO_CACHE, IRREGULAR = "ahci-through", "ahci-through/irregular"


def kept(variant: str, arm: str, bench: str = "gap-drain") -> Runs:
    """Return the runs of an arm of a bench that measures gaps."""
    path = REPO / f"tests/bench/results/{bench}-{variant.replace('/', '-')}.json"
    runs: dict[str, Runs] = json.loads(path.read_text())["runs"]
    return runs[f"{variant} {arm}"]


def middle(variant: str, arm: str, figure: str) -> float:
    return median(run[figure] for run in kept(variant, arm))


def effect(advice: str, drive: Drive = SATA, **queue: Any) -> str:
    """Return the effect of an advice on a disk."""
    known = facts(drive, queue, status=MEASURED)
    return next(each.effect for each in advise(known) if each.id == advice)


def test_a_scheduler_bounds_what_the_first_request_waits_for() -> None:
    none, deadline, bfq = (
        middle(f"64k/{name}/{NO_CACHE}", "unpaced", "first_max_ms")
        for name in ("none", "mq-deadline", "bfq")
    )
    text = effect("EBB-101", scheduler="none")
    assert f"up to {none:.0f} ms with none, {deadline:.0f} ms with mq-deadline" in text
    assert f"{bfq:.0f} ms with bfq" in text
    assert 2 * max(deadline, bfq) <= none * 1.05


def test_a_short_queue_below_bfq_drains_as_much_and_is_felt_less() -> None:
    bfq, deadline = (f"64k/{name}/{IRREGULAR}" for name in ("bfq", "mq-deadline"))
    ours = [middle(each, "ebbgate", "drained_mib") for each in (bfq, deadline)]
    stock = [middle(each, "stock", "drained_mib") for each in (bfq, deadline)]
    text = effect("EBB-105")
    assert f"wrote {ours[0]:.0f} MiB back" in text
    assert f"and {ours[1]:.0f} MiB with mq-deadline" in text
    assert f"the kernel alone {stock[0]:.0f} and {stock[1]:.0f} MiB" in text
    assert 1.15 <= slower(bfq, "p99_ms") < 1.25 and 1.9 <= slower(deadline, "p99_ms") < 2.1


def test_without_a_write_cache_more_is_drained() -> None:
    text = effect("EBB-107", CACHED, scheduler="bfq")
    foreseen = {disk: kept(f"64k/bfq/{disk}", "ebbgate") for disk in ("ahci", NO_CACHE)}
    drained = {disk: sorted(run["drained_mib"] for run in runs) for disk, runs in foreseen.items()}
    (low, mid, high), (lowest, middling, highest) = drained["ahci"], drained[NO_CACHE]
    assert f"{middling:.0f} MiB ({lowest:.0f} to {highest:.0f} in three runs)" in text
    assert f"instead of {mid:.0f} ({low:.0f} to {high:.0f})" in text
    cached, without = "64k/bfq/ahci/irregular", f"64k/bfq/{IRREGULAR}"
    assert f"wrote {middle(without, 'ebbgate', 'drained_mib'):.0f} MiB back" in text
    assert f"instead of {middle(cached, 'ebbgate', 'drained_mib'):.0f}," in text
    assert slower(without, "mean_ms") < 1.05 and 1.05 <= slower(cached, "mean_ms") < 1.15


def test_bfq_lets_dm_cache_write_more_in_a_long_gap() -> None:
    text = throttling(throttled_facts()).effect

    def drained(gap: str, arm: str) -> list[str]:
        variants = (f"{gap}/{name}/{NO_CACHE}" for name in ("bfq", "mq-deadline"))
        runs = [kept(each, arm, "gap-drain-dmcache") for each in variants]
        assert [len(each) for each in runs] == [1, 1]
        return [f"{run['drained_mib']:.0f}" for (run,) in runs]

    (bfq, deadline), stock, short = (
        drained(*each) for each in (("10s", "ebbgate"), ("10s", "stock"), ("2.5s", "ebbgate"))
    )
    assert f"wrote {bfq} MiB back in gaps of 10 s with bfq" in text
    assert f"and {deadline} MiB with mq-deadline" in text
    assert f"the kernel alone {stock[0]} and {stock[1]} MiB" in text
    assert f"in gaps of 2.5 s {short[0]} and {short[1]} MiB" in text


def slower(variant: str, figure: str) -> float:
    """Return how many times as long users' reads take as without write-back."""
    return middle(variant, "ebbgate", figure) / middle(variant, "off", figure)
