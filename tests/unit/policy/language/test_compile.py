# SPDX-License-Identifier: GPL-2.0-only
"""A document is compiled for each kind of cache; unsupported settings are named."""

from __future__ import annotations

import pytest

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.volume import Kind
from ebbgate.policy.defaults import Policy, default_policy
from ebbgate.policy.language.choose import LocalTime
from ebbgate.policy.language.compile import compile_policy
from ebbgate.policy.language.document import ZERO
from ebbgate.policy.language.link import load
from ebbgate.policy.language.param import Param
from ebbgate.policy.language.params import DESTAGE, STREAMS, with_values
from ebbgate.policy.language.value_schemas import QuantitySchema
from ebbgate.policy.limits import Bounds
from ebbgate.policy.strategies.pace_state import PaceParams
from ebbgate.units import MIB, NS_PER_MS, NS_PER_S

RULE = "rules: [{name: r, why: w, when: {idle: 'yes'}, set: %s}]\n"


def compiled(text: str, kind: Kind = Kind.BCACHE, at: LocalTime | None = None) -> Policy:
    texts = {
        "p.yaml": f"version: 1\nname: own\n{text}",
        "q.yaml": "version: 1\nname: quiet\nstrategies: []\n",
    }
    found = load(texts, ())
    assert found.problems == ()
    return compile_policy(found.documents[0], kind, at)


@pytest.mark.parametrize("kind", Kind)
def test_without_a_document_the_default_policy_runs(kind: Kind) -> None:
    assert compile_policy(ZERO, kind) == default_policy(kind)


def test_parameters_of_dm_cache_only_are_ignored_on_bcache() -> None:
    document = "strategies: [idle_destage: {queue_target: 20ms}]\n"
    targets = {}
    for kind in (Kind.BCACHE, Kind.DM_CACHE):
        found = compiled(document, kind=kind).destage
        assert found is not None
        targets[kind] = found.pace.target_ns
    assert targets[Kind.DM_CACHE] == 20 * NS_PER_MS
    assert targets[Kind.BCACHE] == PaceParams().target_ns


def test_parameters_reach_their_fields_in_their_units() -> None:
    found = compiled(
        "strategies:\n"
        "- idle_destage: {wait: 300ms, wait_max: 2s, full_soon: 1min,"
        " gc_share: off, light_share: 12.5%}\n"
        "- stream_bypass: {lookahead: 500ms, fill_target: 60%, stream_rate: 8MiB/s}\n"
    )
    assert found.destage is not None and found.streams is not None
    assert found.destage.wait_ns == 300 * NS_PER_MS
    assert found.destage.wait.max_ns == 2 * NS_PER_S
    assert found.destage.full_soon_s == 60.0
    assert found.destage.gc_ratio is None
    assert found.destage.light_ratio == 0.125
    assert found.streams.lookahead_s == 0.5
    assert found.streams.fill_ratio_max == 0.6
    assert found.streams.stream_bytes_per_s_min == 8 * MIB


def test_a_path_may_have_spaces() -> None:
    text = 'strategies: [promote_hot: {files: ["/srv/vm images/*.qcow2", /srv/db]}]'
    promotion = compiled(text).promotion
    assert promotion is not None
    assert promotion.files == ("/srv/vm images/*.qcow2", "/srv/db")


@pytest.mark.parametrize("wait", ["2.05s", "4.1s", "16.4ms", "0.55min"])
def test_a_wait_with_a_fraction_is_a_whole_number_of_nanoseconds(wait: str) -> None:
    found = compiled(f"strategies: [idle_destage: {{wait: {wait}}}]\n").destage
    assert found is not None
    assert isinstance(found.wait_ns, int)


def test_what_is_not_written_keeps_the_default_of_the_kind() -> None:
    found = compiled("strategies: [idle_destage: {burst: 1s}]\n", Kind.DM_CACHE)
    base = default_policy(Kind.DM_CACHE)
    assert found.destage is not None and base.destage is not None
    assert found.destage.pace == base.destage.pace
    assert found.destage.burst_ns == NS_PER_S


def another(param: Param, defaults: object) -> float:
    """The highest value, or the lowest one where that is the default."""
    assert isinstance(param.value, QuantitySchema)
    high, low = param.value.high, param.value.low
    return low if param.default(defaults) == high else high


@pytest.mark.parametrize("kind", [Kind.BCACHE, Kind.DM_CACHE])
def test_each_parameter_moves_its_field_on_its_kinds_and_no_other(kind: Kind) -> None:
    base = default_policy(kind)
    assert base.destage is not None and base.streams is not None
    for param in DESTAGE:
        value = another(param, base.destage)
        changed = with_values(base.destage, "idle_destage", {param.name: value}, kind)
        assert (changed != base.destage) is (kind in param.kinds), param.name
    for param in STREAMS:
        value = another(param, base.streams)
        moved = with_values(base.streams, "stream_bypass", {param.name: value}, kind)
        assert (moved != base.streams) is (kind in param.kinds), param.name


def test_objectives_reach_the_strategy_that_uses_them() -> None:
    found = compiled("objectives: {dirty_age_max: 2h, read_latency_p99: 9ms}\n")
    assert found.destage is not None
    assert found.destage.age_max_ns == 7200 * NS_PER_S
    assert (found.destage.read_p99_max_ns, found.destage.write_p99_max_ns) == (9_000_000, None)


def test_strategies_that_are_not_named_are_off() -> None:
    only = compiled("strategies: [stream_bypass]\n")
    assert only.destage is None and only.streams is not None
    none = compiled("strategies: []\n", Kind.DM_CACHE)
    assert (none.destage, none.streams, none.cannot, none.order) == (None, None, {}, ())


def test_strategies_keep_the_order_of_the_file() -> None:
    assert compiled("strategies: [stream_bypass, idle_destage]\n").order == (
        "stream_bypass",
        "idle_destage",
    )


def test_what_a_kind_cannot_do_is_still_reported() -> None:
    assert compiled("", Kind.DM_WRITECACHE).cannot.keys() == {"idle_destage", "stream_bypass"}
    only = compiled("strategies: [idle_destage]\n", Kind.DM_WRITECACHE)
    assert only.cannot.keys() == {"idle_destage"}


@pytest.mark.parametrize(
    ("kind", "settings", "gate"),
    [
        (Kind.BCACHE, "{destage_rate: max}", Gate(GateKind.OPEN)),
        (Kind.BCACHE, "{destage_rate: 0}", Gate(GateKind.CLOSED)),
        (Kind.BCACHE, "{destage_rate: kernel}", Gate(GateKind.RELEASED)),
        (Kind.BCACHE, "{destage_rate: 20MiB/s}", Gate(GateKind.PACED, 20 * MIB)),
        (Kind.DM_CACHE, "{destage_rate: max}", Gate(GateKind.PACED, depth_ios=32)),
        (Kind.DM_CACHE, "{destage_rate: 0}", Gate(GateKind.CLOSED)),
        (Kind.DM_CACHE, "{destage_depth: 4}", Gate(GateKind.PACED, depth_ios=4)),
        (Kind.DM_CACHE, "{destage_depth: 0}", Gate(GateKind.CLOSED)),
    ],
)
def test_a_rule_sets_the_gate_as_the_kind_takes_it(kind: Kind, settings: str, gate: Gate) -> None:
    (rule,) = compiled(RULE % settings, kind).rules
    assert (rule.proposal.gate, rule.proposal.unsupported) == (gate, "")
    assert rule.settings == ("gate",)


@pytest.mark.parametrize(
    ("kind", "settings", "why"),
    [
        (Kind.DM_CACHE, "{destage_rate: 20MiB/s}", "dm-cache has no rate; set destage_depth"),
        (Kind.DM_CACHE, "{sequential_cutoff: 1MiB}", "dm-cache has no such setting"),
        (Kind.DM_CACHE, "{congestion_bypass: off}", "dm-cache has no such setting"),
        (Kind.BCACHE, "{destage_depth: 4}", "bcache has no such setting"),
        (Kind.DM_WRITECACHE, "{destage_rate: max}", "dm-writecache has no settings"),
    ],
)
def test_a_rule_that_a_kind_cannot_follow_is_reported(kind: Kind, settings: str, why: str) -> None:
    (rule,) = compiled(RULE % settings, kind).rules
    assert why in rule.proposal.unsupported
    assert rule.proposal.gate is None


def test_unsupported_settings_of_a_rule_are_named_and_the_rest_applies() -> None:
    (rule,) = compiled(RULE % "{destage_rate: 0, sequential_cutoff: 1MiB}", Kind.DM_CACHE).rules
    assert (rule.proposal.gate, rule.proposal.unsupported) == (Gate(GateKind.CLOSED), "")
    assert rule.proposal.reason == "on: w [sequential_cutoff: dm-cache has no such setting]"


def test_limits_are_those_of_the_kind() -> None:
    text = "limits: {destage_rate: {max: 1MiB/s}, destage_depth: {max: 4}, sequential_cutoff: "
    text += "{min: 1MiB}}\n"
    ours, theirs = compiled(text).limits, compiled(text, Kind.DM_CACHE).limits
    assert (ours.destage_rate, ours.destage_depth.any) == (Bounds(None, MIB), False)
    assert ours.sequential_cutoff == Bounds(MIB, None)
    destage = compiled(text).destage
    assert destage is not None and destage.mean_rate_max_bytes_per_s == MIB
    assert (theirs.destage_depth, theirs.destage_rate.any) == (Bounds(None, 4), False)
    assert not theirs.sequential_cutoff.any


def test_an_overlay_is_in_force_in_its_hours_only() -> None:
    text = "schedule: [{name: night, at: '01:00-05:00', use: quiet}]\n"
    night = compiled(text, at=LocalTime(120))
    day = compiled(text, at=LocalTime(600))
    assert (night.name, night.overlay, night.destage) == ("own", "night", None)
    assert (day.overlay, day.destage is None) == ("", False)
    assert compiled(text) == day
