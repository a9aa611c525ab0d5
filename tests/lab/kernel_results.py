# SPDX-License-Identifier: GPL-2.0-only
"""What was proved on which kernel: noted by each run, kept on request, a table for the manual.

    python3 -m tests.lab.kernel_results          print the table of the kept results
    python3 -m tests.lab.kernel_results --keep   keep those of the last runs, and renew that table

I/O: build/lab/kernels.json, which runs fill; tests/lab/results/kernels.json, which is kept;
packaging/README.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
LAST = REPO / "build" / "lab" / "kernels.json"
KEPT = Path(__file__).resolve().parent / "results" / "kernels.json"
MANUAL = REPO / "packaging" / "README.md"
_TABLE = re.compile(r"^\| \| \d.*(?:\n\|.*)+", re.MULTILINE)
PASSED, FAILED = "passed", "failed"

Outcomes = dict[str, str]
"""Of each test: passed, failed, or why the kernel cannot do it."""


@dataclass(slots=True)
class Release:
    """A distribution's kernel; `suites`: outcomes by suite and test. `commit`: of the last run."""

    kernel: str
    commit: str = ""
    suites: dict[str, Outcomes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Where a test ran: on a kernel of the release `name`."""

    name: str
    kernel: str
    commit: str = ""


Results = dict[str, Release]


def load(path: Path) -> Results:
    """Read a file of results; empty without one."""
    if not path.exists():
        return {}
    return {name: Release(**value) for name, value in json.loads(path.read_text()).items()}


def save(results: Results, path: Path) -> None:
    """Write a file of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        name: {
            "kernel": release.kernel,
            "commit": release.commit,
            "suites": {
                suite: dict(sorted(found.items())) for suite, found in release.suites.items()
            },
        }
        for name, release in sorted(results.items())
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def note(results: Results, run: Run, suite: str, test: str, outcome: str) -> None:
    """Add an outcome; those of an older kernel of the release do not count any more."""
    release = results.get(run.name)
    if release is None or release.kernel != run.kernel:
        release = results[run.name] = Release(run.kernel)
    release.commit = run.commit
    release.suites.setdefault(suite, {})[test] = outcome


def commit() -> str:
    """Return the commit of this checkout; empty where git knows none."""
    done = subprocess.run(
        ["git", "-C", REPO, "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def merged(kept: Results, last: Results) -> Results:
    """Return the kept results with those of the last runs in place of the same suites.

    What was kept of a kernel that was not run, or of a suite of the same kernel, stays.
    """
    found = dict(kept)
    for name, release in last.items():
        before = kept.get(name)
        same = before is not None and before.kernel == release.kernel
        suites = {**before.suites, **release.suites} if before and same else release.suites
        found[name] = Release(release.kernel, release.commit, suites)
    return found


def table(results: Results) -> str:
    """The results in Markdown: a row for each suite, a column for each kernel."""
    releases = sorted(results.items(), key=lambda item: _version(item[1].kernel))
    suites = dict.fromkeys(suite for _, release in releases for suite in release.suites)
    head = [f"{_short(release.kernel)} ({name})" for name, release in releases]
    rows = [["", *head], ["---"] * (len(head) + 1)]
    rows += [
        [suite, *(_cell(release.suites.get(suite, {})) for _, release in releases)]
        for suite in suites
    ]
    rows.append(["last run of a test, at commit", *(found.commit or "?" for _, found in releases)])
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)


def _version(kernel: str) -> list[int]:
    return [int(part) for part in _short(kernel).split(".")]


def _short(kernel: str) -> str:
    return kernel.partition("-")[0].partition("+")[0]


def _cell(found: Outcomes) -> str:
    if not found:
        return "not run"
    reasons = dict.fromkeys(why for why in found.values() if why not in (PASSED, FAILED))
    failed = sum(outcome == FAILED for outcome in found.values())
    passed = sum(outcome == PASSED for outcome in found.values())
    words = [f"yes ({passed})"] if passed and not failed else []
    words += [f"**{failed} of {len(found)} failed**"] if failed else []
    words += [f"no: {why}" for why in reasons]
    return "; ".join(words)


def main() -> None:
    """Print the table."""
    kept = load(KEPT)
    if "--keep" in sys.argv[1:]:
        kept = merged(kept, load(LAST))
        save(kept, KEPT)
        MANUAL.write_text(_TABLE.sub(lambda _: table(kept), MANUAL.read_text()))
    print(table(kept))


if __name__ == "__main__":
    main()
