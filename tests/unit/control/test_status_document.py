# SPDX-License-Identifier: GPL-2.0-only
"""What the status tells people: the floor of the tide gauge, and warnings."""

from __future__ import annotations

from dataclasses import replace

from ebbgate.model.heat import ChunkMisses, ChunkRun, HeatPeriod, VolumeLayout
from ebbgate.model.promotion import MoverState, MoverStatus
from ebbgate.model.records import HeatRecord, ReuseSamples
from ebbgate.model.status import LayoutStatus
from ebbgate.policy.limits import Bounds, Limits
from ebbgate.policy.strategies.promote_stop import PromoteParams
from ebbgate.signals.frame import NO_HEAT
from ebbgate.units import MIB, NS_PER_S, format_bytes
from tests.volume_loop_fixture import LoopHarness


def test_the_floor_is_the_threshold_that_the_explanation_shows(enforced: LoopHarness) -> None:
    document = enforced.kept.document
    (threshold,) = (
        condition["threshold"]
        for proposal in document["proposals"]
        for condition in proposal["conditions"]
        if condition["signal"] == "dirty data"
    )
    assert document["dirty_floor_bytes"] > 0
    assert format_bytes(document["dirty_floor_bytes"]) == threshold


def test_without_idle_destage_there_is_no_floor(enforced: LoopHarness) -> None:
    enforced.loop.set_policy(replace(enforced.loop.policy, destage=None))
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.kept.document["dirty_floor_bytes"] is None


def test_what_is_not_known_at_first_is_no_warning(enforced: LoopHarness) -> None:
    document = enforced.kept.document
    assert document["disturbance_ns"] is None
    assert not {"disturbance", "heat"} & set(document["missing"])


def test_what_is_known_of_files_is_in_the_document(enforced: LoopHarness) -> None:
    assert enforced.kept.document["layout"] is None
    enforced.loop.layout = LayoutStatus(1, 4096, {"on another device": 2}, 5)
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.kept.document["layout"] == {
        "files": 1,
        "known_bytes": 4096,
        "left_out": {"on another device": 2},
        "read_ns": 5,
        "error": "",
    }


def test_what_promote_hot_does_is_in_the_document(enforced: LoopHarness) -> None:
    assert enforced.kept.status.promotion is None
    enforced.loop.set_policy(replace(enforced.loop.policy, promotion=PromoteParams()))
    enforced.loop.mover = MoverStatus(MoverState.WAITING, "job 3 warms /srv/a", 5, 1, 70, 310, 2)
    enforced.now_ms += 1000
    enforced.tick()
    found = enforced.kept.document["promotion"]
    assert (found["phase"], found["saved_ns"]) == ("unknown", None)
    assert (found["mover"], found["mover_why"]) == ("waiting", "job 3 warms /srv/a")
    assert (found["moved_bytes"], found["failed_bytes"], found["busy_ns"]) == (5 * MIB, MIB, 70)
    assert (found["other_promotions"], found["promotion_holds"]) == (310, 2)


def test_where_users_missed_is_in_the_document(enforced: LoopHarness) -> None:
    assert enforced.kept.document["heat"]["why"] == NO_HEAT
    now_ns = enforced.now_ns()
    period = HeatPeriod(now_ns - 10 * NS_PER_S, now_ns, (ChunkMisses(9, 5, 1),))
    enforced.loop.on_record(HeatRecord("bcache0", now_ns, period))
    enforced.now_ms += 1000
    enforced.tick()
    found = enforced.kept.document["heat"]
    assert (found["why"], found["misses"], found["bin_bytes"]) == ("", 6, 8 * MIB)
    assert found["bins"][:3] == [0, 6, 0]
    assert found["chunks"] == [{"chunk": 9, "misses": 6, "group": "", "state": None}]


def test_the_layout_reaches_the_frame(enforced: LoopHarness) -> None:
    enforced.loop.signals.layout = VolumeLayout(5, ("/srv/a",), (ChunkRun(0, 1, 0),))
    enforced.now_ms += 1000
    enforced.tick()
    frame = enforced.loop.state.current_frame
    assert frame is not None
    assert frame.layout is enforced.loop.signals.layout


def test_dirty_data_has_an_age_until_the_volume_is_clean(enforced: LoopHarness) -> None:
    def age_s(dirty_bytes: int | None) -> float | None:
        enforced.now_ms += 10_000
        enforced.tick(dirty_bytes=dirty_bytes)
        found = enforced.kept.document["totals"]["dirty_age_ns"]
        return None if found is None else found / NS_PER_S

    assert age_s(0) is None
    assert age_s(MIB) == 0
    assert age_s(2 * MIB) == 10.25
    assert age_s(None) == 20.5
    assert age_s(0) is None


def test_writes_to_the_cache_name_its_device(enforced: LoopHarness) -> None:
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.kept.document["totals"]["cache_writes"] is None
    enforced.now_ms += 1000
    enforced.tick(cache_written_bytes=MIB)
    (cache,) = enforced.volume.caches
    enforced.now_ms += 1000
    enforced.tick(cache_written_bytes=MIB)
    expected = {"device": cache.name, "bytes": MIB}
    assert enforced.kept.document["totals"]["cache_writes"] == expected


def test_the_miss_ratio_curve_is_around_the_present_size(enforced: LoopHarness) -> None:
    for _ in range(4):
        references = tuple(2 * 256 * block for block in range(128))
        enforced.loop.on_record(ReuseSamples(enforced.volume.name, 1, references))
    enforced.now_ms += 10_000
    enforced.tick()
    document = enforced.kept.document
    curve = document["miss_ratio"]
    assert curve["sampled_reads"] == 512
    sizes = curve["sizes_bytes"]
    assert sizes[len(sizes) // 2] == document["cache_bytes"]
    assert curve["miss_ratios"][-1] == 0.25


def test_promote_hot_is_the_summary_where_nothing_is_written_back(enforced: LoopHarness) -> None:
    policy = replace(enforced.loop.policy, promotion=PromoteParams(), order=("promote_hot",))
    enforced.loop.set_policy(policy)
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.kept.document["now"].startswith("promote_hot: unknown: ")


def test_limits_hide_no_reason_why_nothing_can_be_tuned(enforced: LoopHarness) -> None:
    limits = Limits(destage_rate=Bounds(high=8 * MIB))
    enforced.loop.set_policy(replace(enforced.loop.policy, limits=limits))
    enforced.now_ms += 1000
    enforced.tick(cache_mode="none")
    document = enforced.kept.document
    assert document["now"].startswith("Nothing to tune: the cache mode is none: ")
    assert document["gate"]["reason"].startswith("the cache mode is none: ")


def test_limits_alone_change_nothing(enforced: LoopHarness) -> None:
    limits = Limits(sequential_cutoff=Bounds(high=MIB))
    policy = replace(enforced.loop.policy, destage=None, streams=None, limits=limits, order=())
    enforced.loop.set_policy(policy)
    enforced.now_ms += 1000
    enforced.tick()
    assert enforced.kept.document["now"] == "Observing: changes nothing (policy adaptive)"


def test_without_idle_destage_the_summary_tells_of_another_strategy(enforced: LoopHarness) -> None:
    policy = replace(enforced.loop.policy, destage=None, order=("stream_bypass",))
    enforced.loop.set_policy(policy)
    enforced.now_ms += 1000
    enforced.tick()
    document = enforced.kept.document
    assert document["now"] == "stream_bypass: rest: no stream"
    assert document["gate"]["reason"] == "no strategy decides about the gate"
