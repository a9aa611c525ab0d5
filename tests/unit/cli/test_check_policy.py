# SPDX-License-Identifier: GPL-2.0-only
"""`check-policy` prints one line per valid file, or every error with its position."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy_texts import EXAMPLE, SHIPPED
from tests.unit.conftest import Cli


def keep(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_the_shipped_policies_pass_with_one_line_each(cli: Cli) -> None:
    result = cli("check-policy", *map(str, SHIPPED))
    assert (result.code, result.err) == (0, "")
    assert len(result.out.splitlines()) == len(SHIPPED)


def test_the_summary_has_volumes_strategies_and_rules(cli: Cli, tmp_path: Path) -> None:
    file = keep(tmp_path, "p.yaml", EXAMPLE)
    assert cli("check-policy", file).out == (
        f"{file}: nas-evening: bcache* of bcache; idle_destage, stream_bypass;"
        " rules cliff-guard; schedule backup\n"
    )


def test_every_error_line_begins_with_its_position(cli: Cli, tmp_path: Path) -> None:
    bad = keep(tmp_path, "p.yaml", "version: 0\nname: X\n")
    result = cli("check-policy", bad)
    assert result.code == 78
    assert [line.split(": ")[0] for line in result.out.splitlines()] == [
        f"{bad}:1:10",
        f"{bad}:2:7",
    ]
    assert result.err.startswith("ebbgate: 2 errors in 1 of 1 policy files\n")


def test_included_and_used_policies_are_checked(cli: Cli, tmp_path: Path) -> None:
    entry = "schedule: [{name: n, at: '01:00-02:00', use: near}]\n"
    own = keep(tmp_path, "p.yaml", f"version: 1\nname: own\ninclude: database\n{entry}")
    missing = cli("check-policy", own)
    assert missing.code == 78
    assert f"{own}:4:46: schedule.use: unknown policy 'near'" in missing.out
    keep(tmp_path, "q.yaml", "version: 1\nname: near\n")
    assert cli("check-policy", own).code == 0


def test_each_folder_is_a_set_of_its_own(cli: Cli, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    entry = "schedule: [{name: n, at: '01:00-02:00', use: near}]\n"
    own = keep(tmp_path, "one/p.yaml", f"version: 1\nname: own\n{entry}")
    same = keep(tmp_path, "two/p.yaml", "version: 1\nname: own\n")
    near = keep(tmp_path, "two/q.yaml", "version: 1\nname: near\n")
    result = cli("check-policy", own, same, near)
    assert (result.code, f"{own}:3:46: schedule.use: unknown policy" in result.out) == (78, True)
    assert cli("check-policy", same, near, same).out.count(same) == 1


def test_a_name_that_another_file_of_the_folder_has_is_an_error(cli: Cli, tmp_path: Path) -> None:
    old = keep(tmp_path, "a.yaml", "version: 1\nname: own\n")
    new = keep(tmp_path, "b.yaml", "version: 1\nname: own\n")
    for file, other in ((old, new), (new, old)):
        result = cli("check-policy", file)
        assert (result.code, result.out) == (
            78,
            f"{file}:2:7: name: {other} has the name 'own', too; change one of them\n",
        )


def test_a_copy_that_is_no_policy_file_may_have_the_name(cli: Cli, tmp_path: Path) -> None:
    keep(tmp_path, "a.yaml", "version: 1\nname: own\n")
    copy = keep(tmp_path, "a.yaml.new", "version: 1\nname: own\n")
    assert cli("check-policy", copy).code == 0


def test_a_link_belongs_to_the_folder_that_has_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    entry = "schedule: [{name: n, at: '01:00-02:00', use: near}]\n"
    stored = keep(tmp_path, "store/p.yaml", f"version: 1\nname: own\n{entry}")
    keep(tmp_path, "near.yaml", "version: 1\nname: near\n")
    (tmp_path / "p.yaml").symlink_to(stored)
    assert cli("check-policy", str(tmp_path / "p.yaml")).code == 0


@pytest.mark.parametrize(
    ("match", "text", "said"),
    [
        ("", "queue_target: 28ms", "has no effect on bcache since version 0.2; remove it"),
        ("{kind: dm-cache}", "queue_target: 28ms", ""),
        ("", "drain_share: 90%", ""),
        (
            "{kind: bcache}",
            "drain_share: 90%",
            "has no effect here: it is for dm-cache, the policy for bcache; remove it",
        ),
    ],
)
def test_a_key_without_effect_is_named_in_a_note(
    cli: Cli, tmp_path: Path, match: str, text: str, said: str
) -> None:
    head = "version: 1\nname: own\n" + (f"match: {match}\n" if match else "")
    own = keep(tmp_path, "p.yaml", f"{head}strategies:\n  - idle_destage: {{{text}}}\n")
    result = cli("check-policy", own)
    assert (result.code, result.err) == (0, "")
    line = head.count("\n") + 2
    key = f"strategies.idle_destage.{text.partition(':')[0]}"
    notes = [f"{own}:{line}:20: {key}: {said}"] if said else []
    assert result.out.splitlines()[1:] == notes


WRITECACHE_TEXT = """version: 1
name: own
match: {kind: dm-writecache}
limits: {destage_rate: {max: 1MiB/s}}
strategies:
  - idle_destage: {wait: 1s, drain_share: 90%}
  - stream_bypass
backing_scheduler: bfq
rules:
  - name: r
    why: w
    when: {idle: "yes"}
    set: {destage_rate: max, sequential_cutoff: 1MiB}
"""


def test_a_policy_for_dm_writecache_has_a_note_on_each_key(cli: Cli, tmp_path: Path) -> None:
    own = keep(tmp_path, "p.yaml", WRITECACHE_TEXT)
    result = cli("check-policy", own)
    assert (result.code, result.err) == (0, "")
    none = (
        "has no effect here: dm-writecache has no settings that can be changed while it is in use"
    )
    clean = (
        "to write all dirty data back now, run ebbgate clean; to write back earlier, lower the"
        " watermarks in the table"
    )
    assert result.out.splitlines()[1:] == [
        f"{own}:4:1: limits: {none}; remove it",
        f"{own}:6:5: strategies.idle_destage: has no effect here: dm-writecache takes its"
        " watermarks only with the table: its write-back cannot be held or released while the"
        f" volume is in use; {clean}",
        f"{own}:7:5: strategies.stream_bypass: has no effect here: dm-writecache cannot let a"
        " stream bypass the cache; remove it",
        f"{own}:8:1: backing_scheduler: {none}; remove it",
        f"{own}:13:11: rules.set.destage_rate: {none}; {clean}",
        f"{own}:13:30: rules.set.sequential_cutoff: {none}; remove it",
    ]


def test_a_name_that_was_cut_short_is_an_error(cli: Cli, tmp_path: Path) -> None:
    own = keep(
        tmp_path, "p.yaml", f"version: 1\nname: own\nmatch: {{volume: [a, LVM-{'v' * 50}…]}}\n"
    )
    result = cli("check-policy", own)
    assert result.code == 78
    assert result.out == (
        f"{own}:3:21: match.volume: a name that is cut short; write it in full; ebbgate status"
        " --json has names and uuids\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "match: {kind: dm-writecache}\nstrategies: []\n",
        "match: {kind: [dm-writecache, bcache]}\nstrategies: [stream_bypass]\n",
        "match: {volume: vg/data}\nstrategies: [stream_bypass]\n",
    ],
)
def test_a_policy_that_may_do_something_has_no_note_for_dm_writecache(
    cli: Cli, tmp_path: Path, text: str
) -> None:
    own = keep(tmp_path, "p.yaml", f"version: 1\nname: own\n{text}")
    assert cli("check-policy", own, "--json").document["notes"] == []


def test_json_has_the_keys_without_effect_in_notes(cli: Cli, tmp_path: Path) -> None:
    text = "version: 1\nname: own\nmatch: {kind: dm-cache}\nlimits: {destage_rate: {max: 1MiB/s}}\n"
    found = cli("check-policy", "--json", keep(tmp_path, "p.yaml", text)).document
    assert (found["valid"], found["problems"]) == (True, [])
    (note,) = found["notes"]
    assert (note["key"], note["line"], note["next_step"]) == ("limits.destage_rate", 4, "remove it")


def test_errors_in_other_files_are_ignored(cli: Cli, tmp_path: Path) -> None:
    own = keep(tmp_path, "p.yaml", "version: 1\nname: own\n")
    keep(tmp_path, "q.yaml", "version: [")
    assert cli("check-policy", own).code == 0


def test_a_missing_policy_file_is_an_error(cli: Cli, tmp_path: Path) -> None:
    result = cli("check-policy", str(tmp_path / "none.yaml"))
    assert (result.code, "no such file" in result.err) == (66, True)
    assert cli("check-policy", str(tmp_path)).code == 78


def test_a_folder_is_an_error_that_says_to_name_its_files(cli: Cli, tmp_path: Path) -> None:
    result = cli("check-policy", str(tmp_path))
    assert (result.code, result.err) == (
        78,
        f"ebbgate: {tmp_path}: is a folder, not a policy file\n"
        f"  name its files, for example {tmp_path}/*.yaml\n",
    )
    below_a_file = keep(tmp_path, "p.yaml", EXAMPLE) + "/q.yaml"
    assert cli("check-policy", below_a_file).code == 66


def test_every_file_that_cannot_be_read_is_named(cli: Cli, tmp_path: Path) -> None:
    one, two = str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml")
    result = cli("check-policy", one, two)
    assert (result.code, result.out) == (66, f"{two}: no such file\n")
    assert result.err.startswith(f"ebbgate: {one}: no such file\n")


def test_json_has_policies_and_problems(cli: Cli, tmp_path: Path) -> None:
    good = keep(tmp_path, "p.yaml", EXAMPLE)
    (policy,) = cli("check-policy", good, "--json").document["policies"]
    assert (policy["name"], policy["kinds"], policy["rules"]) == (
        "nas-evening",
        ["bcache"],
        ["cliff-guard"],
    )
    bad = keep(tmp_path, "q.yaml", "version: 1\nname: x\nwhy: \n")
    (problem,) = cli("check-policy", bad, "--json").document["problems"]
    assert (problem["line"], problem["column"], problem["key"]) == (3, 5, "why")


# ---- for scripts --------------------------------------------------------------------------------
PROBLEM = {"file", "line", "column", "key", "message", "next_step", "text"}
POLICY = {"file", "name", "why", "volumes", "kinds", "strategies", "rules", "schedule"}


def test_json_always_has_the_documented_keys(cli: Cli, tmp_path: Path) -> None:
    good = keep(tmp_path, "p.yaml", EXAMPLE)
    bad = keep(tmp_path, "q.yaml", "version: 1\nname: x\nstrategys: []\n")
    for files in ((good,), (bad,), (good, bad, str(tmp_path / "none.yaml"))):
        result = cli("check-policy", "--json", *files)
        document = result.document
        assert set(document) == {"valid", "exit_code", "policies", "problems", "notes"}
        assert (document["exit_code"], document["valid"]) == (result.code, result.code == 0)
        assert all(set(each) == POLICY for each in document["policies"])
        assert all(set(each) == PROBLEM for each in document["problems"])
        assert all(each["message"] and each["next_step"] for each in document["problems"])


def test_json_has_the_message_and_the_next_step_apart(cli: Cli, tmp_path: Path) -> None:
    bad = keep(tmp_path, "q.yaml", "version: 1\nname: x\nstrategys: []\n")
    (problem,) = cli("check-policy", bad, "--json").document["problems"]
    assert (problem["file"], problem["line"], problem["column"]) == (bad, 3, 1)
    assert problem["message"].startswith("unknown key")
    assert problem["next_step"].endswith("did you mean strategies?")
    assert problem["text"].startswith(f"{bad}:3:1: strategys: {problem['message']}")


def test_json_names_an_unreadable_file_and_still_checks_the_others(
    cli: Cli, tmp_path: Path
) -> None:
    missing = str(tmp_path / "none.yaml")
    bad = keep(tmp_path, "q.yaml", "version: 1\nname: X\n")
    result = cli("check-policy", missing, bad, "--json")
    assert result.code == 66
    wrong, unread = result.document["problems"]
    assert wrong["file"] == bad
    assert (unread["file"], unread["line"], unread["column"]) == (missing, None, None)
    assert (unread["message"], unread["next_step"]) == ("no such file", "check the path")


def test_json_names_a_file_whose_folder_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    good = keep(tmp_path, "p.yaml", EXAMPLE)
    bad = str(tmp_path / ("a" * 300) / "q.yaml")
    result = cli("check-policy", good, bad, "--json")
    assert (result.code, len(result.document["policies"])) == (78, 1)
    assert [each["file"] for each in result.document["problems"]] == [bad]


@pytest.mark.parametrize("text", ["", "[", "version: 1\n", "\x00", "a: &b 1\nc: *b\n"])
def test_every_problem_has_a_next_step(cli: Cli, tmp_path: Path, text: str) -> None:
    document = cli("check-policy", keep(tmp_path, "p.yaml", text), "--json").document
    assert document["problems"]
    assert all(each["line"] >= 1 and each["next_step"] for each in document["problems"])
