# SPDX-License-Identifier: GPL-2.0-only
"""Documents are chosen for volumes, and linked with what they include and use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbgate.model.volume import Kind
from ebbgate.policy.language.choose import LocalTime, choose, entry_at, matches_name
from ebbgate.policy.language.document import ZERO, PolicyDocument
from ebbgate.policy.language.link import link, load, overlaid
from ebbgate.policy.language.parse import parse
from ebbgate.units import MIB
from tests.builders import dm_volume, volume

BASE = """version: 1
name: base
objectives: {dirty_age_max: 1h, read_latency_p99: 9ms}
limits: {sequential_cutoff: {max: 64MiB}, destage_rate: {max: 10MiB/s}}
strategies: [stream_bypass]
rules:
- {name: one, why: of base, when: {idle: "yes"}, set: {destage_rate: 0}}
- {name: two, why: of base, when: {idle: "yes"}, set: {destage_rate: 0}}
schedule: [{name: night, at: "01:00-02:00", use: base}]
"""


def document(text: str, file: str = "p.yaml") -> PolicyDocument:
    parsed = parse(f"version: 1\n{text}", file)
    assert parsed.document is not None, parsed.problems
    return parsed.document


def base() -> PolicyDocument:
    found = parse(BASE.partition("schedule")[0], "base.yaml").document
    assert found is not None
    return found


def linked(text: str, *others: str) -> PolicyDocument:
    found = link([document(text), *(document(each) for each in others)], [base()])
    assert found.problems == ()
    return found.documents[0]


def problem(*texts: str) -> str:
    found = link([document(text, f"{n}.yaml") for n, text in enumerate(texts)], [base()])
    assert found.documents == ()
    return str(found.problems[0])


def test_a_document_wins_over_what_it_includes_key_by_key() -> None:
    own = """name: own
include: base
objectives: {dirty_age_max: 2h}
limits: {destage_rate: {max: 20MiB/s}}
rules: [{name: two, why: mine, when: {idle: "no"}, set: {destage_rate: max}}]
"""
    found = linked(own)
    assert found.objectives == {"dirty_age_max": 7200 * 10**9, "read_latency_p99": 9_000_000}
    assert found.limits == {
        "sequential_cutoff": {"max": 64 * MIB},
        "destage_rate": {"max": 20 * MIB},
    }
    assert [use.name for use in found.strategies or ()] == ["stream_bypass"]
    assert [(rule.name, rule.why) for rule in found.rules] == [("two", "mine"), ("one", "of base")]
    assert found.includes == ()


def test_a_document_takes_the_scheduler_of_what_it_includes() -> None:
    shipped = [document("name: base\nbacking_scheduler: bfq\n", "base.yaml")]
    found = link([document("name: own\ninclude: base\n", "own.yaml")], shipped)
    assert [each.backing_scheduler for each in found.documents] == ["bfq"]


def test_strategies_replace_those_that_are_included_as_a_whole() -> None:
    assert linked("name: own\ninclude: base\nstrategies: []\n").strategies == ()


def test_limits_are_joined_bound_by_bound_and_the_first_of_two_that_contradict_wins() -> None:
    text = "limits: {destage_rate: {min: 1MiB/s}, sequential_cutoff: {min: 128MiB}}\n"
    joined = {
        "destage_rate": {"min": MIB, "max": 10 * MIB},
        "sequential_cutoff": {"min": 128 * MIB},
    }
    assert linked(f"name: own\ninclude: base\n{text}").limits == joined
    assert overlaid(document(f"name: own\n{text}"), base()).limits == joined
    assert overlaid(base(), document(f"name: own\n{text}")).limits == {
        "destage_rate": {"min": MIB, "max": 10 * MIB},
        "sequential_cutoff": {"max": 64 * MIB},
    }


def test_an_overlay_wins_but_for_the_limits_of_the_document() -> None:
    own = document("name: own\nlimits: {destage_rate: {max: 1MiB/s}}\nstrategies: []\n")
    found = overlaid(own, base())
    assert found.name == "own"
    assert found.limits["destage_rate"] == {"max": MIB}
    assert found.limits["sequential_cutoff"] == {"max": 64 * MIB}
    assert [use.name for use in found.strategies or ()] == ["stream_bypass"]
    assert [rule.name for rule in found.rules] == ["one", "two"]


@pytest.mark.parametrize(
    ("own", "used", "scheduler"), [("", "bfq", "bfq"), ("bfq", "", "bfq"), ("", "", "")]
)
def test_an_overlay_sets_the_scheduler_if_it_names_one(own: str, used: str, scheduler: str) -> None:
    base, overlay = (
        document(f"name: own\n{f'backing_scheduler: {name}' if name else ''}\n")
        for name in (own, used)
    )
    assert overlaid(base, overlay).backing_scheduler == scheduler


def test_a_schedule_may_use_a_policy_of_the_same_folder_or_a_shipped_one() -> None:
    entry = "schedule: [{name: night, at: '01:00-02:00', use: %s}]\n"
    for used, other in (("base", ""), ("near", "name: near\ninclude: base\nstrategies: []\n")):
        texts = [f"name: own\n{entry % used}", *([other] if other else [])]
        overlay = linked(*texts).schedule[0].overlay
        assert overlay is not None
        assert overlay.name == used
        assert [rule.name for rule in overlay.rules] == ["one", "two"]


def test_a_missing_name_is_reported_with_position_and_suggestion() -> None:
    assert problem("name: own\ninclude: [bse]\n") == (
        "0.yaml:3:11: include: unknown policy 'bse'; known policies: base; did you mean base?"
    )
    unknown = problem("name: own\nschedule: [{name: n, at: '01:00-02:00', use: ownn}]\n")
    assert unknown.startswith(
        "0.yaml:3:46: schedule.use: unknown policy 'ownn'; known policies: base"
    )
    assert unknown.endswith("did you mean own?")


def test_only_shipped_policies_can_be_included() -> None:
    assert "unknown policy 'near'" in problem("name: own\ninclude: near\n", "name: near\n")


def test_a_ring_of_includes_names_the_chain() -> None:
    ring = {
        "a.yaml": "version: 1\nname: a\ninclude: b\n",
        "b.yaml": "version: 1\nname: b\ninclude: c\n",
        "c.yaml": "version: 1\nname: c\ninclude: a\n",
    }
    found = load(ring)
    assert found.documents == ()
    assert "c.yaml:3:10: include: includes itself: a -> b -> c -> a; remove one of them" in [
        str(each) for each in found.problems
    ]


def test_a_schedule_that_uses_its_own_policy_is_refused() -> None:
    found = problem("name: own\nschedule: [{name: n, at: '01:00-02:00', use: own}]\n")
    assert found.startswith("0.yaml:3:46: schedule.use: uses itself: own -> own")


def test_two_policies_of_one_name_are_refused() -> None:
    assert problem("name: own\n", "name: own\n").startswith(
        "1.yaml:2:7: name: 0.yaml has the name 'own', too"
    )


def test_one_invalid_file_keeps_the_whole_folder_from_loading() -> None:
    found = load({"a.yaml": "version: 1\nname: a\n", "b.yaml": "version: 2\nname: b\n"}, ())
    assert found.documents == ()
    assert [each.file for each in found.problems] == ["b.yaml"]


def test_the_first_that_matches_is_chosen_in_the_order_of_file_names() -> None:
    late = document("name: late\nmatch: {volume: 'bcache*'}\n", "z/20-late.yaml")
    early = document("name: early\nmatch: {kind: bcache}\n", "z/10-early.yaml")
    other = document("name: other\nmatch: {volume: vg/*}\n", "a/05-other.yaml")
    documents = (late, early, other)
    assert choose(documents, volume()).name == "early"
    assert choose((late, other), volume()).name == "late"
    assert choose(documents, dm_volume()).name == "other"
    assert choose((late, early), dm_volume()) is ZERO
    assert choose((), volume()) is ZERO


def test_a_policy_may_name_a_volume_by_its_uuid() -> None:
    uuid = "0b1e5000-0000-4000-8000-000000000001"
    own = document(f"name: own\nmatch: {{volume: {uuid}}}\n")
    assert choose((own,), replace(volume(), backing_uuid=uuid)).name == "own"
    assert choose((own,), volume()) is ZERO


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ("{}", True),
        ("{volume: bcache0}", True),
        ("{volume: [sda, 'bcache[0-3]']}", True),
        ("{volume: bcache}", False),
        ("{volume: 'BCACHE*'}", False),
        ("{volume: 'bcache*', kind: [dm-cache, bcache]}", True),
        ("{volume: 'bcache*', kind: dm-cache}", False),
    ],
)
def test_pattern_and_kind_must_both_fit(match: str, fits: bool) -> None:
    found = document(f"name: own\nmatch: {match}\n")
    assert matches_name(found, ("bcache0",), Kind.BCACHE) is fits


@pytest.mark.parametrize(
    ("at", "days", "clock", "weekday", "in_force"),
    [
        ("01:00-05:00", "", "00:59", 0, False),
        ("01:00-05:00", "", "01:00", 0, True),
        ("01:00-05:00", "", "04:59", 6, True),
        ("01:00-05:00", "", "05:00", 0, False),
        ("00:00-24:00", "", "23:59", 3, True),
        ("23:00-05:00", "", "23:00", 3, True),
        ("23:00-05:00", "", "04:59", 3, True),
        ("23:00-05:00", "", "12:00", 3, False),
        ("23:00-05:00", "days: fri, ", "23:30", 4, True),
        ("23:00-05:00", "days: fri, ", "03:00", 5, True),
        ("23:00-05:00", "days: fri, ", "03:00", 4, False),
        ("23:00-05:00", "days: sun, ", "03:00", 0, True),
        ("01:00-05:00", "days: [sat, sun], ", "03:00", 4, False),
        ("01:00-05:00", "days: [sat, sun], ", "03:00", 6, True),
    ],
)
def test_a_schedule_spans_midnight_and_selects_days(
    at: str, days: str, clock: str, weekday: int, in_force: bool
) -> None:
    found = document(f"name: own\nschedule: [{{name: n, at: '{at}', {days}use: base}}]\n")
    hours, minutes = clock.split(":")
    entry = entry_at(found, LocalTime(int(hours) * 60 + int(minutes), weekday))
    assert (entry is not None) is in_force


def test_the_first_of_two_overlapping_entries_applies() -> None:
    entries = "{name: a, at: '01:00-05:00', use: base}, {name: b, at: '00:00-24:00', use: base}"
    found = document(f"name: own\nschedule: [{entries}]\n")
    assert [entry_at(found, LocalTime(m)).name for m in (120, 600)] == ["a", "b"]  # type: ignore[union-attr]
