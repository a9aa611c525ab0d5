# SPDX-License-Identifier: GPL-2.0-only
"""A policy file becomes a document, or all its errors with positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate import __version__
from ebbgate.policy.language.diagnostic import PROBLEMS_MAX, REMOVED, RENAMED
from ebbgate.policy.language.document import PolicyDocument
from ebbgate.policy.language.parse import parse
from ebbgate.policy.language.yaml_events import BYTES_MAX, DEPTH_MAX, NODES_MAX, SCALAR_MAX
from ebbgate.policy.rule_signals import SIGNALS
from ebbgate.policy.rules import Check
from ebbgate.units import KIB, MIB, NS_PER_S
from tests.policy_texts import EXAMPLE

HEAD = "version: 1\nname: x\n"
MANY = "{any: [" + ", ".join(['{idle_for: "> 1s"}'] * 21) + "]}"
RULE = "rules:\n- name: r\n  why: w\n"


def document(text: str) -> PolicyDocument:
    parsed = parse(text, "p.yaml")
    assert parsed.problems == ()
    assert parsed.document is not None
    return parsed.document


def problems(source: str | bytes) -> list[str]:
    parsed = parse(source, "p.yaml")
    assert parsed.document is None
    return [str(problem).removeprefix("p.yaml:") for problem in parsed.problems]


def test_the_example_of_the_reference_is_parsed_completely() -> None:
    found = document(EXAMPLE)
    assert (found.name, found.match.volumes, found.match.kinds) == (
        "nas-evening",
        ("bcache*",),
        ("bcache",),
    )
    assert found.limits == {"sequential_cutoff": {"min": 256 * KIB, "max": 64 * MIB}}
    assert found.objectives == {"read_latency_p99": 30_000_000, "dirty_age_max": 7200 * NS_PER_S}
    assert found.strategies is not None
    assert {use.name: use.values for use in found.strategies} == {
        "idle_destage": {"wait": "auto", "free_floor": 0.1, "start_share": 0.02},
        "stream_bypass": {"fill_target": 0.6},
    }
    (rule,) = found.rules
    assert rule.when == (
        (Check("time_to_full", "<", 60 * NS_PER_S), Check("dirty_ratio", ">", 0.4)),
    )
    assert (rule.hold_ns, rule.cooldown_ns) == (3 * NS_PER_S, 30 * NS_PER_S)
    assert rule.until == ((Check("dirty_ratio", "<", 0.25),),)
    assert rule.settings == {"destage_rate": "max"}
    (entry,) = found.schedule
    assert (entry.start_min, entry.end_min, entry.use.text) == (60, 300, "backup-window")


@pytest.mark.parametrize(
    ("when", "groups"),
    [
        ('{idle: "yes", idle_for: ">= 2s"}', [[("idle", "is"), ("idle_for", ">=")]]),
        ('{all: [{idle: "no"}, {idle_for: "< 1s"}]}', [[("idle", "is"), ("idle_for", "<")]]),
        ('{any: [{idle: "no"}, {idle_for: "< 1s"}]}', [[("idle", "is")], [("idle_for", "<")]]),
        (
            '{any: [{all: [{idle: "no"}]}, {regime: "!= gap"}]}',
            [[("idle", "is")], [("regime", "is not")]],
        ),
        ("{regime: [burst, stream]}", [[("regime", "is")]]),
    ],
)
def test_conditions_are_an_or_of_ands(when: str, groups: list[list[tuple[str, str]]]) -> None:
    (rule,) = document(f"{HEAD}{RULE}  when: {when}\n  set: {{destage_rate: 0}}\n").rules
    assert [[(c.signal, c.comparison) for c in group] for group in rule.when] == groups


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "1:1: the file is empty; a policy begins with `version: 1`"),
        ("# nothing\n", "1:1: the file is empty; a policy begins with `version: 1`"),
        (b"version: 1\nname: \xff", "2:7: not UTF-8; save the file in UTF-8"),
        ("a: \ud800", "1:4: a character that YAML does not allow (U+D800); remove it"),
        ('name: "\\ud800"', "1:7: a control character (U+D800); remove it"),
        ("[]", "1:1: not a policy; write a mapping with the keys version, name, why, match"),
        ("name: x\n", "1:1: version: the key is missing; add for example `version: 1`"),
        ("version: 1\n", "1:1: name: the key is missing; add for example `name: nas-evening`"),
        ("version: 0\nname: x\n", "1:10: version: unknown value '0'; write 1"),
        ('version: "1"\nname: x\n', "1:10: version: unknown value '1'; write 1"),
        (f"{HEAD}---\nname: y\n", "3:1: a second document; write one policy per file"),
        (f"{HEAD}name: y\n", "3:1: name: duplicate key, first in line 2"),
        (f"{HEAD}why: &a b\n", "3:6: anchors and aliases are not allowed"),
        (f"{HEAD}why: *a\n", "3:6: anchors and aliases are not allowed"),
        (f"{HEAD}why: !!str b\n", "3:6: tags are not allowed: 'tag:yaml.org,2002:str'"),
        (f"{HEAD}? [a]\n: b\n", "3:3: the key is not a word; write `key: value`"),
        (f"{HEAD}why: {'x' * (SCALAR_MAX + 1)}", "3:6: the value is too long; at most 1000"),
        (f"{HEAD}rules: {'[' * (DEPTH_MAX + 1)}", "3:20: nested too deeply; at most 12 levels"),
        (f"{HEAD}rules: [{'a,' * NODES_MAX}]", "3:19995: too many values; at most 10000"),
        ("#" * (BYTES_MAX + 1), "1:1: the file has 65537 bytes; at most 65536 bytes"),
        ('a: "\\UFFFFFFFF"', "1:1: not YAML: an escape or a number out of range"),
        ("a: [", "1:5: not YAML: expected the node content"),
        (f"{HEAD}\tname: x", "3:1: not YAML: found character '\\t' that cannot start any token"),
    ],
)
def test_text_that_is_not_a_policy_is_refused(source: str | bytes, message: str) -> None:
    assert problems(source)[0].startswith(message)


def test_a_policy_of_a_newer_version_has_one_error_that_names_both_versions() -> None:
    (found,) = problems("version: 2\nname: x\nforesight: 5min\nrules: []\n")
    assert found == (
        f"1:10: version: ebbgate {__version__} knows version 1 of the policy language only;"
        " install an ebbgate that knows version 2, or rewrite the file"
    )


def test_a_key_of_a_newer_version_is_named_with_the_version_that_does_not_know_it() -> None:
    (found,) = problems(f"{HEAD}foresight: 5min")
    assert found.startswith("3:1: foresight: unknown key in a policy; known keys in ebbgate ")
    assert f" {__version__}: version, name, " in found
    (signal,) = problems(
        f"{HEAD}rules: [{{name: a, why: b, when: {{sunshine: '> 1'}}, set: {{hold: true}}}}]"
    )[:1]
    assert f"unknown signal; known signals in ebbgate {__version__}: " in signal


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            "ruels: []",
            "3:1: ruels: unknown key in a policy; known keys: version, name, why, match, ",
        ),
        ("why: ", "3:5: why: the value is missing"),
        ("why: [a]", "3:6: why: a list instead of a single value"),
        ("match: {volum: a}", "3:9: match.volum: unknown key in match"),
        ("match: {kind: bcach}", "3:15: match.kind: unknown value 'bcach'"),
        (
            "match: {volume: /dev/bcache0}",
            "3:17: match.volume: '/dev/bcache0' is not valid here; expected: a name or a pattern,"
            " no path",
        ),
        ("match: {volume: []}", "3:17: match.volume: 0 entries; allowed: 1 to 100"),
        ("limits: {writeback_percent: {}}", "3:10: limits.writeback_percent: unknown key"),
        ("limits: {sequential_cutoff: 5}", "3:29: limits.sequential_cutoff: not the bounds of"),
        ("limits: {sequential_cutoff: {}}", "3:29: limits.sequential_cutoff: the bounds of"),
        (
            "limits: {sequential_cutoff: {min: 1MiB, max: 64KiB}}",
            "3:46: limits.sequential_cutoff.max: min is greater than max; swap them",
        ),
        (
            "limits: {sequential_cutoff: {min: 1KiB}}",
            "3:35: limits.sequential_cutoff.min: '1KiB' is out of range; allowed: 64KiB to",
        ),
        ("objectives: {dirty_age_max: 30}", "3:29: objectives.dirty_age_max: '30' has no unit"),
        ("objectives: {dirty_age_max: nan}", "3:29: objectives.dirty_age_max: 'nan' is not a"),
        ("objectives: {dirty_age_max: inf}", "3:29: objectives.dirty_age_max: 'inf' is not a"),
        ("objectives: {dirty_age_max: 1e9s}", "3:29: objectives.dirty_age_max: '1e9s' is not"),
        ("objectives: {dirty_age_max: -1s}", "3:29: objectives.dirty_age_max: '-1s' is out of"),
        ("strategies: idle_destage", "3:13: strategies: not a list"),
        ("strategies: [idle_destge]", "3:14: strategies: unknown strategy: 'idle_destge'"),
        ("strategies: [{a: 1, b: 2}]", "3:14: strategies: one entry has 2 keys"),
        ("strategies: [idle_destage, idle_destage]", "3:13: strategies: duplicate strategy"),
        (
            "strategies: [idle_destage: {wiat: 1s}]",
            "3:29: strategies.idle_destage.wiat: unknown key in the parameters of idle_destage",
        ),
        (
            "strategies: [idle_destage: {wait_min: 2s, wait_max: 1s}]",
            "3:53: strategies.idle_destage.wait_max: wait_min is greater than wait_max; swap them",
        ),
        (
            "strategies: [stream_bypass: {cutoff_min: 8MiB}]",
            "3:42: strategies.stream_bypass.cutoff_min: cutoff_min is greater than cutoff_max; set"
            " cutoff_max, too, which is 4MiB",
        ),
        (
            "strategies: [idle_destage: {wait_max: 20ms}]",
            "3:39: strategies.idle_destage.wait_max: wait_min is greater than wait_max; set"
            " wait_min, too, which is 30ms",
        ),
        ("schedule: [{name: a, at: 1-2, use: b}]", "3:26: schedule.at: '1-2' is not a time span"),
        ('schedule: [{name: a, at: "24:00-24:00", use: b}]', "3:26: schedule.at: "),
        (
            'schedule: [{name: a, at: "02:00-02:00", use: b}]',
            "3:26: schedule.at: start and end are the same",
        ),
        (
            'schedule: [{name: a, at: "01:00-02:00", days: [su], use: b}]',
            "3:48: schedule.days: unknown value 'su'; write one of mon, tue, wed",
        ),
        ("include: ../etc", "3:10: include: '../etc' is not valid here"),
    ],
)
def test_an_invalid_value_is_reported_with_its_position(rest: str, message: str) -> None:
    assert problems(f"{HEAD}{rest}\n")[0].startswith(message)


@pytest.mark.parametrize(
    ("when", "message"),
    [
        (
            "{dirty_ratio: > 40%}",
            ": not YAML: found character '>' that cannot start any token; put",
        ),
        ("5", ": rules.when: not a condition"),
        ("{}", ": rules.when: not a condition"),
        ("{any: []}", ": rules.when: not a list of conditions"),
        ("{any: [5]}", ": rules.when.any: not a condition"),
        (
            '{dirty_ratio: "> 400%"}',
            ": rules.when.dirty_ratio: '400%' is out of range; allowed: 0% to 100%",
        ),
        ('{idle_for: "> -1s"}', ": rules.when.idle_for: '-1s' is out of range; allowed: 0 or more"),
        ('{all: [{any: [{idle: "yes"}]}]}', ": rules.when.any: `any` is nested too deeply; `any:`"),
        ('{any: [{any: [{idle: "yes"}]}]}', ": rules.when.any.any: `any` is nested too deeply"),
        ('{any: [{all: [{all: [{idle: "yes"}]}]}]}', ": rules.when.any.all: `all` is nested"),
        ('{any: [{idle: "yes"}], idle: "no"}', ": rules.when.any: `any` must be the only key here"),
        ('{dirty_ratio: "40%"}', ": rules.when.dirty_ratio: '40%' has no comparison"),
        ('{dirty_ratio: "> 0.4"}', ": rules.when.dirty_ratio: '0.4' has no unit"),
        ('{dirty_ratio: "> -1%"}', ": rules.when.dirty_ratio: '-1%' is out of range"),
        ('{dirty_ratio: "> 5s"}', ": rules.when.dirty_ratio: 's' is not a unit of ratio"),
        ("{dirty_ratio: [1]}", ": rules.when.dirty_ratio: a list instead of a single value"),
        ('{regime: "> gap"}', ": rules.when.regime: > cannot be used with regime"),
        ('{regime: "!="}', ": rules.when.regime: unknown value '!='; write one of gap, burst"),
        ('{idle: "== "}', ": rules.when.idle: unknown value '=='; write one of yes, no"),
        ("{regime: [gap, storm]}", ": rules.when.regime: unknown value 'storm'"),
        ("{idle: [[a]]}", ": rules.when.idle: a list instead of a single value"),
        (MANY, ": rules.when: 21 comparisons; at most 20"),
    ],
)
def test_an_invalid_condition_is_reported(when: str, message: str) -> None:
    text = f"{HEAD}{RULE}  when: {when}\n  set: {{destage_rate: 0}}\n"
    (first, *_) = problems(text)
    line, _, rest = first.partition(":")
    assert line == "6"
    assert f":{rest.partition(':')[2]}".startswith(message)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("objectives: {dirty_age_max: 2m}", "min"),
        ("objectives: {dirty_age_max: 2sec}", "s"),
        ("objectives: {dirty_age_max: 30 seconds}", "s"),
        ("objectives: {dirty_age_max: 2hrs}", "h"),
        ("objectives: {read_latency_p99: 500µs}", "us"),
        ("objectives: {read_latency_p99: 500\N{GREEK SMALL LETTER MU}s}", "us"),
        ("objectives: {read_latency_p99: 20 milliseconds}", "ms"),
        ("limits: {sequential_cutoff: {max: 64MB}}", "MiB"),
        ("limits: {sequential_cutoff: {max: 64k}}", "KiB"),
        ("limits: {destage_rate: {max: 10MB/s}}", "MiB/s"),
        ("limits: {destage_rate: {max: 10M}}", "MiB/s"),
        ("matsh: {}", "match"),
        ("strategies: [idle_destage: {wait: atuo}]", "auto"),
        ("strategies: [{strem_bypass: {}}]", "stream_bypass"),
        ("objectives: {read_latncy_p99: 1ms}", "read_latency_p99"),
    ],
)
def test_the_nearest_key_or_unit_is_named(written: str, meant: str) -> None:
    assert problems(f"{HEAD}{written}\n")[0].endswith(f"; did you mean {meant}?")


def test_all_errors_are_reported_in_the_order_of_the_file() -> None:
    found = problems("versoin: 1\nname: X\nlimits: {a: 1}\nobjectives: {b: 1}\n")
    assert [each.split(":")[0] for each in found] == ["1", "1", "2", "3", "4"]


def test_the_number_of_reported_errors_is_bounded() -> None:
    assert len(problems(HEAD + "".join(f"key{n}: 1\n" for n in range(100)))) == PROBLEMS_MAX


def test_checks_of_several_keys_wait_for_the_keys_even_among_too_many_errors() -> None:
    many = "".join(f"key{n}: 1\n" for n in range(PROBLEMS_MAX))
    assert len(problems(f"{HEAD}{many}{RULE}  when: 5\n")) == PROBLEMS_MAX


def test_two_settings_of_the_gate_in_one_rule_are_refused() -> None:
    both = "  when: {idle: yes}\n  set: {destage_rate: max, destage_depth: 4}\n"
    assert problems(HEAD + RULE + both) == [
        "7:8: rules.set: destage_rate and destage_depth both control write-back; remove one"
    ]


@pytest.mark.parametrize("missing", ["name", "why", "when", "set"])
def test_a_rule_without_a_part_is_refused(missing: str) -> None:
    parts = {"name": "r", "why": "w", "when": "{idle: yes}", "set": "{destage_rate: 0}"}
    text = "".join(f"  {key}: {part}\n" for key, part in parts.items() if key != missing)
    assert problems(f"{HEAD}rules:\n-{text[1:]}")[0].startswith(
        f"4:3: rules.{missing}: the key is missing"
    )


@pytest.mark.parametrize("signs", [BYTES_MAX // 2, BYTES_MAX // 2 - len(HEAD)])
def test_a_text_is_measured_in_bytes_as_the_file_that_is_made_of_it(signs: int) -> None:
    text = f"{HEAD}# {'ä' * signs}\n"
    found = [[str(each) for each in parse(each, "p").problems] for each in (text, text.encode())]
    assert found[0] == found[1]
    assert bool(found[0]) is (len(text.encode()) > BYTES_MAX)


def test_a_byte_order_mark_is_no_error() -> None:
    assert parse(b"\xef\xbb\xbfversion: 1\nname: x\n", "p").problems == ()


@pytest.mark.parametrize(
    ("written", "position"),
    [("idle_destage", "3:29: strategies.idle_destage."), ("when", "6:10: rules.when.")],
)
def test_a_former_name_is_an_error_that_names_the_new_one(written: str, position: str) -> None:
    for old, new in RENAMED.items():
        if (new in SIGNALS) != (written == "when"):
            continue
        text = f"{RULE}  when: {{{old}: '> 1s'}}\n  set: {{destage_rate: max}}\n"
        if written != "when":
            text = f"strategies: [idle_destage: {{{old}: 1s}}]\n"
        assert problems(HEAD + text) == [f"{position}{old}: `{old}` is now `{new}`; rename it"]


@pytest.mark.parametrize("key", REMOVED)
def test_a_removed_key_is_a_note_and_the_rest_of_the_file_applies(key: str) -> None:
    _, strategy, name = key.split(".")
    found = parse(f"{HEAD}strategies: [{strategy}: {{wait: 1s, {name}: x}}]\n", "f")
    assert found.problems == ()
    assert found.document is not None
    assert found.document.strategies is not None
    assert list(found.document.strategies[0].values) == ["wait"]
    since = REMOVED[key]
    assert [str(note) for note in found.notes] == [
        f"f:3:39: {key}: has no effect any more since version {since}; remove it"
    ]


@pytest.mark.parametrize(("rate", "count"), [("20MiB/s", 1), ("0", 0), ("max", 0), ("hold", 0)])
@pytest.mark.parametrize("kind", ["dm-cache", "bcache", ""])
def test_a_rate_in_a_policy_for_dm_cache_is_a_note(rate: str, count: int, kind: str) -> None:
    match = f"match: {{kind: {kind}}}\n" if kind else ""
    text = f"{match}{RULE}  when: {{idle: no}}\n  set: {{destage_rate: {rate}}}\n"
    notes = [str(note) for note in parse(HEAD + text, "f").notes]
    assert len(notes) == (count if kind == "dm-cache" else 0)
    for note in notes:
        assert note.startswith("f:8:23: rules.set.destage_rate: has no effect here: it is for bcac")


def test_a_removed_key_is_unknown_elsewhere() -> None:
    (problem,) = problems(f"{HEAD}limits: {{leak_interval: 1s}}\n")
    assert "limits.leak_interval: unknown key" in problem


def test_every_key_that_0_1_0_documented_is_still_read() -> None:
    """Else an upgrade would leave no valid policy, and every volume would only be observed."""
    found = parse(Path(__file__).with_name("policy-0.1.0.yaml").read_bytes(), "f")
    assert found.problems == ()
    lost = ["queue_target", "leak_interval"]
    assert [note.key for note in found.notes] == [f"strategies.idle_destage.{key}" for key in lost]
