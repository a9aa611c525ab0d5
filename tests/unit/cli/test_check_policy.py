# SPDX-License-Identifier: GPL-2.0-only
"""`check-policy` prints one line per valid file, or every error with its position."""

from __future__ import annotations

from pathlib import Path

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
    bad = keep(tmp_path, "p.yaml", "version: 2\nname: X\n")
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


def test_errors_in_other_files_are_ignored(cli: Cli, tmp_path: Path) -> None:
    own = keep(tmp_path, "p.yaml", "version: 1\nname: own\n")
    keep(tmp_path, "q.yaml", "version: [")
    assert cli("check-policy", own).code == 0


def test_a_missing_policy_file_is_an_error(cli: Cli, tmp_path: Path) -> None:
    result = cli("check-policy", str(tmp_path / "none.yaml"))
    assert (result.code, "no such file" in result.err) == (66, True)
    assert cli("check-policy", str(tmp_path)).code == 78


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
