# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of the runs on several kernels, and the table that the manual has of it."""

from __future__ import annotations

from pathlib import Path

from tests.lab.kernel_results import (
    FAILED,
    KEPT,
    MANUAL,
    PASSED,
    Results,
    Run,
    commit,
    load,
    merged,
    note,
    save,
    table,
)


def test_the_table_is_that_of_the_kept_results() -> None:
    command = "python3 -m tests.lab.kernel_results --keep"
    assert table(load(KEPT)) in MANUAL.read_text(), f"run: {command}"


def test_a_cell_counts_what_passed_and_names_what_failed_or_cannot_be() -> None:
    results: Results = {}
    for test, outcome in (("a", PASSED), ("b", PASSED), ("c", "no types of modules")):
        note(results, Run("trixie", "6.12.1+deb13-amd64", "c0ffee"), "counts", test, outcome)
    note(results, Run("bookworm", "6.1.0-56-amd64"), "counts", "a", FAILED)
    note(results, Run("bookworm", "6.1.0-56-amd64"), "counts", "b", PASSED)
    assert table(results).splitlines() == [
        "| | 6.1.0 (bookworm) | 6.12.1 (trixie) |",
        "| --- | --- | --- |",
        "| counts | **1 of 2 failed** | yes (2); no: no types of modules |",
        "| last run of a test, at commit | ? | c0ffee |",
    ]


def test_a_newer_kernel_of_a_release_begins_without_results() -> None:
    results: Results = {}
    note(results, Run("trixie", "6.12.1+deb13-amd64"), "counts", "a", PASSED)
    note(results, Run("trixie", "6.12.2+deb13-amd64"), "gaps", "b", PASSED)
    assert results["trixie"].suites == {"gaps": {"b": PASSED}}


def test_a_run_of_one_suite_leaves_the_others_unless_the_kernel_is_newer() -> None:
    kept: Results = {}
    note(kept, Run("bullseye", "5.10.0-32-amd64"), "counts", "a", FAILED)
    note(kept, Run("bullseye", "5.10.0-32-amd64"), "gaps", "b", PASSED)
    note(kept, Run("trixie", "6.12.1+deb13-amd64"), "gaps", "b", PASSED)
    last: Results = {}
    note(last, Run("bullseye", "5.10.0-32-amd64"), "counts", "c", PASSED)
    note(last, Run("trixie", "6.12.2+deb13-amd64"), "counts", "c", PASSED)
    found = merged(kept, last)
    assert found["bullseye"].suites == {"counts": {"c": PASSED}, "gaps": {"b": PASSED}}
    assert found["trixie"].suites == {"counts": {"c": PASSED}}


def test_the_commit_is_that_of_the_last_run() -> None:
    kept: Results = {}
    note(kept, Run("bullseye", "5.10.0-32-amd64", "first"), "gaps", "b", PASSED)
    last: Results = {}
    note(last, Run("bullseye", "5.10.0-32-amd64", "second"), "counts", "c", PASSED)
    assert merged(kept, last)["bullseye"].commit == "second"
    assert commit()


def test_results_are_read_as_they_were_saved(tmp_path: Path) -> None:
    results: Results = {}
    note(results, Run("trixie", "6.12.1+deb13-amd64"), "counts", "a", PASSED)
    save(results, tmp_path / "new" / "results.json")
    assert load(tmp_path / "new" / "results.json") == results
