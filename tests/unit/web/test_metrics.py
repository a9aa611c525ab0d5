# SPDX-License-Identifier: GPL-2.0-only
"""What Prometheus scrapes: both formats, what is unknown left out, nothing that falls or grows
without bound.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebbgate import __version__
from ebbgate.knobs.places import knobs_of
from ebbgate.model.status import CacheWrites, DaemonStatus, VolumeStatus
from ebbgate.model.status_json import status_from_json, status_to_json
from ebbgate.signals.totals import Totals, tick_counts, volume_totals
from ebbgate.store.queries import Statuses, TimedStatus
from ebbgate.units import NS_PER_S
from ebbgate.web.metrics.families import FAMILIES
from ebbgate.web.metrics.page import SERIES_STALE_NS, HistoryFiles, render
from tests.builders import device, live_document, live_status, tick, volume
from tests.house_rules import REPO

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("EBBGATE_UPDATE_GOLDEN", "") not in ("", "0")
NOW_NS = 1_800_000_000_000_000_000
DAEMON: dict[str, Any] = {
    "started_unix_ns": NOW_NS - 3600 * NS_PER_S,
    "probe": {"kind": "ebpf", "state": "running", "restarts": 1},
    "history": {"written": True, "dropped": 0, "trouble": None},
    "policies": {"problems": ["nas.yaml:3:1: no such key"]},
}
COUNTS = st.lists(st.integers(min_value=0, max_value=1 << 40), max_size=108)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def busy_totals(**parts: Any) -> dict[str, Any]:
    """A volume that has seen a little of everything."""
    seen = tick(
        path={
            "read": {"hit": {"ios": 4, "bytes": 16384, "lat": [0] * 20 + [3, 1]}},
            "write": {"bypass": {"ios": 1, "bytes": 1 << 20, "lat": [0] * 60 + [1]}},
        },
        bypass={"sequential": {"ios": 1, "bytes": 1 << 20}, "other": {"ios": 0, "bytes": 0}},
        runs={"read": [0, 0, 0, 16384], "write": [0] * 11 + [1 << 20]},
        gaps=[0] * 10 + [5, 0, 1],
        gaps_ns=[0] * 10 + [6_000_000, 0, 5_000_000],
        destage={"done_ios": 2, "done_bytes": 131072},
        lost={"ring": 0, "streams": 7},
    )
    changes = {("writeback_rate", "idle_destage"): 12, ("writeback_percent", "manual"): 1}
    rollbacks = {"gate": 0, "streams": 2}
    writes = CacheWrites("nvme0n1p1", 1 << 32)
    totals = Totals(NOW_NS, tick_counts(seen), changes, 9, rollbacks, 90 * NS_PER_S, writes)
    return totals_document(totals) | parts


def totals_document(totals: Totals) -> dict[str, Any]:
    """The totals as they are in a status."""
    found = status_to_json(VolumeStatus(totals=volume_totals(totals)))["totals"]
    assert isinstance(found, dict)
    return found


def page(*, alive: bool = True, openmetrics: bool = False, age_s: float = 1.0, **parts: Any) -> str:
    """One volume with a fresh status."""
    known = {"state": "dirty", "room_bytes": 0, "backing_depth_ios": 3, "totals": busy_totals()}
    volume = live_status(**{**known, **parts})
    at_ns = NOW_NS - round(age_s * NS_PER_S)
    live = Statuses(daemon_status(DAEMON), {"bcache0": TimedStatus(at_ns, volume)})
    files = HistoryFiles(90 << 20, 4 << 20, 256 << 20)
    return render(live, NOW_NS, alive, openmetrics, files)


def daemon_status(document: dict[str, Any]) -> TimedStatus[DaemonStatus]:
    return TimedStatus(NOW_NS, status_from_json(DaemonStatus, document))


def samples(text: str) -> Samples:
    """By name and labels."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for line in text.split("\n"):
        if line.startswith("#") or not line:
            continue
        key, _, value = line.rpartition(" ")
        name, _, labels = key.partition("{")
        pairs = frozenset(
            (label.partition("=")[0], label.partition("=")[2].strip('"'))
            for label in labels.rstrip("}").split(",")
            if label
        )
        assert (name, pairs) not in found, f"twice: {line}"
        found[name, pairs] = float(value)
    return found


def well_formed(text: str) -> None:
    """Every line is a comment, or a name with labels and a number."""
    for line in text.split("\n"):
        assert re.fullmatch(r'(#.*|[a-z_]+({([a-z_]+="[^\n]*",?)+})? [-+.\de]+)?', line), line


def value(found: Samples, name: str, **labels: str) -> float | None:
    """The one sample with these labels, among others; None without one."""
    values = [v for (n, pairs), v in found.items() if n == name and pairs >= set(labels.items())]
    assert len(values) <= 1
    return values[0] if values else None


def names(text: str) -> set[str]:
    return {name for name, _ in samples(text)}


def test_the_modelled_hit_ratio_has_a_series_for_each_of_five_sizes() -> None:
    found, scales = samples(page()), ("0.25", "0.5", "1", "2", "4")
    ratios = [value(found, "ebbgate_modelled_hit_ratio", scale=scale) for scale in scales]
    assert ratios == [0.3, 0.4, 0.5, 0.75, 0.875]
    assert "ebbgate_modelled_hit_ratio" not in names(page(miss_ratio=None))


# ---- formats ------------------------------------------------------------------------------------
@pytest.mark.parametrize("openmetrics", [False, True])
def test_page_equals_the_golden_file(openmetrics: bool) -> None:
    golden = GOLDEN / f"metrics.{'openmetrics' if openmetrics else 'text'}"
    text = page(openmetrics=openmetrics).replace(f'"{__version__}"', '"VERSION"')
    if UPDATE:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text(), "review the change; EBBGATE_UPDATE_GOLDEN=1 rewrites it"


def test_every_metric_of_the_table_is_in_the_page_with_its_help_and_type() -> None:
    text = page(openmetrics=True)
    for family in FAMILIES:
        unit = f"# UNIT {family.name} {family.unit}\n" if family.unit else ""
        assert f"# TYPE {family.name} {family.type}\n{unit}{family.name}" in text
        assert f"# HELP {family.name} " in text
        assert family.help.endswith(".")


def test_a_unit_is_the_end_of_its_name() -> None:
    for family in FAMILIES:
        assert family.name.startswith("ebbgate_")
        assert not family.name.endswith(("_total", "_info", "_count", "_sum", "_bucket"))
        assert not family.unit or family.name.endswith(f"_{family.unit}")


def test_both_formats_have_the_same_samples() -> None:
    assert samples(page()) == samples(page(openmetrics=True))


def test_label_values_are_escaped_and_truncated() -> None:
    text = page(title='a"b\\c\nd', policy="p" * 500, overlay="\ud800")
    assert 'title="a\\"b\\\\c\\nd"' in text
    assert f'policy="{"p" * 128}"' in text
    assert 'overlay="?"' in text
    text.encode()


# ---- values -------------------------------------------------------------------------------------
def test_levels_and_knobs_are_in_base_units() -> None:
    knobs = {
        "sequential_cutoff": {"value": "4194304", "owner": "kernel"},
        "writeback_rate": {"value": "8", "owner": "ebbgate"},
        "writeback_percent": {"value": "10", "owner": "manual"},
        "congested_read_threshold_us": {"value": "2000", "owner": "kernel"},
        "max_sectors_kb": {"value": "32", "owner": "kernel"},
        "cache_mode": {"value": "writeback", "owner": "kernel"},
        "no_such_knob": {"value": "1", "owner": "kernel"},
    }
    found = samples(page(knobs=knobs))
    values = {
        dict(labels)["knob"]: (dict(labels)["unit"], v)
        for (name, labels), v in found.items()
        if name == "ebbgate_knob_value"
    }
    assert values == {
        "sequential_cutoff": ("bytes", 4194304),
        "writeback_rate": ("bytes_per_second", 4096),
        "writeback_percent": ("ratio", 0.1),
        "congested_read_threshold_us": ("seconds", 0.002),
        "max_sectors_kb": ("bytes", 32768),
    }
    assert value(found, "ebbgate_knob_manual", knob="writeback_percent") == 1
    assert value(found, "ebbgate_knob_manual", knob="writeback_rate") == 0
    assert value(found, "ebbgate_idle_wait_seconds") == 0.3


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("dirty_bytes", "ebbgate_dirty_data_bytes"),
        ("room_bytes", "ebbgate_dirty_room_bytes"),
        ("cache_bytes", "ebbgate_cache_size_bytes"),
        ("in_use_ratio", "ebbgate_in_use_ratio"),
        ("time_to_full_s", "ebbgate_time_to_full_seconds"),
        ("time_to_clean_s", "ebbgate_time_to_clean_seconds"),
        ("backing_depth_ios", "ebbgate_backing_queue_requests"),
        ("wait_ns", "ebbgate_idle_wait_seconds"),
        ("state", "ebbgate_volume_state"),
        ("totals", "ebbgate_decisions_total"),
    ],
)
def test_unknown_values_are_left_out(key: str, metric: str) -> None:
    assert metric in names(page())
    unknown: dict[str, Any] = {key: None}
    assert metric not in names(page(**unknown))


def test_without_probe_records_its_metrics_are_left_out() -> None:
    found = names(page(totals=totals_document(Totals(1, None, {}, 3, {"gate": 0}))))
    assert "ebbgate_decisions_total" in found
    assert not {n for n in found if n.startswith(("ebbgate_io", "ebbgate_seq", "ebbgate_idle_gap"))}
    assert not {"ebbgate_destage_bytes_total", "ebbgate_probe_lost_total"} & found


@pytest.mark.parametrize(("state", "shown"), [("a new word", "other"), ("diskless", "failed")])
def test_one_state_of_each_set_is_1(state: str, shown: str) -> None:
    found = samples(page(frozen=True, state=state, regime="stream"))
    sums: dict[str, float] = defaultdict(float)
    for (name, labels), v in found.items():
        if name in dict(labels):
            sums[name] += v
    assert (len(sums), set(sums.values())) == (5, {1})
    assert value(found, "ebbgate_mode", ebbgate_mode="hold") == 1
    assert value(found, "ebbgate_volume_state", ebbgate_volume_state=shown) == 1
    assert value(found, "ebbgate_probe_state", ebbgate_probe_state="running") == 1


def test_probe_is_down_for_any_reason() -> None:
    probe = {"probe": {"kind": "ebpf", "state": "down: no BTF", "restarts": 3}}
    found = samples(render(Statuses(daemon_status({**DAEMON, **probe})), NOW_NS, True, False))
    assert value(found, "ebbgate_probe_state", ebbgate_probe_state="down") == 1
    assert value(found, "ebbgate_probe_restarts_total") == 3


# ---- what is not there --------------------------------------------------------------------------
def test_dead_daemon_leaves_only_up_and_ages() -> None:
    found = samples(page(alive=False, age_s=90))
    assert {n for n, _ in found} == {
        "ebbgate_up",
        "ebbgate_build_info",
        "ebbgate_sample_age_seconds",
        "ebbgate_history_file_bytes",
        "ebbgate_history_log_bytes",
        "ebbgate_history_limit_bytes",
    }
    assert value(found, "ebbgate_up") == 0
    assert value(found, "ebbgate_sample_age_seconds", volume="bcache0") == 90


def test_stale_volume_leaves_only_its_age() -> None:
    fresh, old, future = (
        {n for n, labels in samples(page(age_s=age_s)) if ("volume", "bcache0") in labels}
        for age_s in (SERIES_STALE_NS / NS_PER_S, SERIES_STALE_NS / NS_PER_S + 1, -3600)
    )
    assert len(fresh) > 20
    assert old == future == {"ebbgate_sample_age_seconds"}
    # From before the clock was set back.
    assert value(samples(page(age_s=-50)), "ebbgate_sample_age_seconds") == 50


def test_fresh_volumes_are_shown_if_the_daemon_state_is_unknown() -> None:
    live = Statuses(volumes={"bcache0": TimedStatus(NOW_NS, live_status())})
    found = names(render(live, NOW_NS, None, False))
    assert "ebbgate_dirty_data_bytes" in found
    assert "ebbgate_up" not in found


def test_page_without_statuses_has_up_and_build() -> None:
    assert names(render(Statuses(), NOW_NS, False, False)) == {"ebbgate_up", "ebbgate_build_info"}
    assert render(Statuses(), NOW_NS, False, True).endswith("# EOF\n")


@given(st.dictionaries(st.sampled_from(sorted(live_document())) | st.just("totals"), ANYTHING))
def test_document_of_another_version_is_harmless(parts: dict[str, Any]) -> None:
    well_formed(page(**parts))


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(sorted(busy_totals())), ANYTHING))
@example({"knob_changes": [None, {"count": 10**400}]})
@example({"paths": {"read hit": {"latency_sum_ns": 1.5, "latency_counts": ["many"]}}})
def test_totals_of_another_version_are_harmless(parts: dict[str, Any]) -> None:
    well_formed(page(totals=busy_totals(**parts)))


# ---- histograms ---------------------------------------------------------------------------------
@given(COUNTS, st.lists(st.integers(min_value=0, max_value=1 << 40), max_size=32))
def test_buckets_are_cumulative_and_the_last_one_is_the_count(
    latencies: list[int], log2: list[int]
) -> None:
    seen = tick(
        path={"read": {"hit": {"ios": sum(latencies), "bytes": 0, "lat": latencies}}},
        gaps=log2,
        runs={"read": log2},
    )
    found = samples(page(totals=totals_document(Totals(1, tick_counts(seen)))))
    wanted = {
        "ebbgate_io_seconds": sum(latencies),
        "ebbgate_idle_gap_seconds": sum(log2),
        "ebbgate_seq_run_bytes": sum(log2),
    }
    for name, total in wanted.items():
        buckets = sorted(
            (float(dict(labels)["le"]), v)
            for (n, labels), v in found.items()
            if n == f"{name}_bucket" and ("op", "write") not in labels
        )
        counts = [v for _, v in buckets]
        assert counts == sorted(counts)
        assert list(buckets[-1]) == [float("inf"), total]
        count = value(found, f"{name}_count", volume="bcache0")
        assert count == (None if name == "ebbgate_seq_run_bytes" else total)


def test_a_request_is_in_the_buckets_from_its_latency_up() -> None:
    # The probe's bucket 20 is 64 to 80 us, 21 is 80 to 96 us.
    found = samples(page())
    hit = {"op": "read", "path": "hit"}
    assert value(found, "ebbgate_io_seconds_bucket", le="6.4e-05", **hit) == 0
    assert value(found, "ebbgate_io_seconds_bucket", le="0.000128", **hit) == 4
    assert value(found, "ebbgate_io_seconds_count", **hit) == 4
    assert value(found, "ebbgate_io_seconds_sum", **hit) == pytest.approx(3 * 72e-6 + 88e-6)
    assert value(found, "ebbgate_io_bytes_total", **hit) == 16384


def test_a_byte_is_in_the_buckets_above_the_length_of_its_run() -> None:
    # The probe's bucket 11 is 1 to 2 MiB.
    found = samples(page())
    assert value(found, "ebbgate_seq_run_bytes_bucket", op="write", le="1048576.0") == 0
    assert value(found, "ebbgate_seq_run_bytes_bucket", op="write", le="2097152.0") == 1 << 20


def test_gaps_have_their_exact_sum() -> None:
    found = samples(page())
    assert value(found, "ebbgate_idle_gap_seconds_count") == 6
    assert value(found, "ebbgate_idle_gap_seconds_sum") == pytest.approx(0.011)
    assert value(found, "ebbgate_idle_gap_seconds_bucket", le="0.001024") == 0
    assert value(found, "ebbgate_idle_gap_seconds_bucket", le="0.002048") == 5


# ---- how many -----------------------------------------------------------------------------------
HOST_SERIES = 13
"""Of the daemon, its probe, its history and its policies."""
VOLUME_SERIES, DISK_SERIES = 335, 2
"""Of a bcache volume on one disk that has seen everything, and of each further disk, without
`ebbgate_knob_changes_total`, which has one for each knob and actor: a few, and at most 257."""


def full_volume(disks: Sequence[str]) -> VolumeStatus:
    """A bcache volume on these disks whose every figure is known."""
    flow = {"ios": 1, "bytes": 1, "lat": [1] * 108}
    seen = tick(
        path={
            "read": dict.fromkeys(("hit", "miss", "bypass"), flow),
            "write": dict.fromkeys(("writeback", "writethrough", "bypass"), flow),
        },
        bypass={why: {"ios": 1, "bytes": 1} for why in ("sequential", "congested", "other")},
        runs=dict.fromkeys(("read", "write"), [1] * 32),
        gaps=[1] * 32,
        gaps_ns=[1] * 32,
        destage={"done_ios": 1, "done_bytes": 1},
        lost=dict.fromkeys(("ring", "unmatched", "streams", "table", "reuse", "missed"), 1),
    )
    writes = CacheWrites("nvme0n1p1", 1)
    totals = Totals(1, tick_counts(seen), {}, 1, {"gate": 0, "streams": 0}, 1, writes)
    rows = knobs_of(replace(volume(), disks=tuple(map(device, disks))))
    knobs = {row.name: {"value": "1", "owner": "kernel"} for row in rows if row.readable}
    levels = dict.fromkeys(("time_to_full_s", "time_to_clean_s", "disturbance_ns"), 1)
    known = {"state": "dirty", "room_bytes": 0, "backing_depth_ios": 3, "in_use_ratio": 0.1}
    return live_status(**levels, **known, knobs=knobs, totals=totals_document(totals))


@pytest.mark.parametrize(("volumes", "disks"), [(0, 1), (1, 1), (4, 3), (64, 1)])
def test_the_series_of_a_host_are_those_of_its_volumes_and_a_few(volumes: int, disks: int) -> None:
    status = full_volume(("sda", "sdb", "sdc")[:disks])
    live = {f"bcache{number}": TimedStatus(NOW_NS, status) for number in range(volumes)}
    statuses = Statuses(daemon_status(DAEMON), live)
    text = render(statuses, NOW_NS, True, True, HistoryFiles(1, 1, 1))
    assert len(samples(text)) == HOST_SERIES + volumes * (VOLUME_SERIES + DISK_SERIES * (disks - 1))


def test_the_documentation_has_the_number_of_series() -> None:
    text = (REPO / "packaging" / "README.md").read_text()
    assert f"each further disk below it has {DISK_SERIES} more" in text
    assert f"A host has {HOST_SERIES} series, and at most {VOLUME_SERIES} for each volume" in text
