# SPDX-License-Identifier: GPL-2.0-only
"""`make bench`: lists the scenarios, or runs one; the last line it prints is one JSON object."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import platform
import sys
from pathlib import Path

import tests.bench as package
from tests.bench.context import Context, Scenario
from tests.bench.report import Runs, kept_runs
from tests.bench.table import file_name, markdown, short
from tests.lab import host
from tests.lab.errors import LabError

RESULTS = Path(__file__).parent / "results"
REPO = Path(__file__).resolve().parents[2]
BEGIN = "<!-- PYTHONPATH=controller python3 -m tests.bench --table -->"
END = "<!-- end of the table -->"


def scenarios() -> dict[str, Scenario]:
    """Every module of this package that has a SCENARIO (or several, SCENARIOS)."""
    found = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if module_info.name.startswith("__"):
            continue
        module = importlib.import_module(f"tests.bench.{module_info.name}")
        single = getattr(module, "SCENARIO", None)
        for scenario in (*getattr(module, "SCENARIOS", ()), *([single] if single else [])):
            found[scenario.name] = scenario
    return found


def machine() -> dict[str, str]:
    """Where a figure comes from."""
    cpus = Path("/proc/cpuinfo").read_text().count("processor\t")
    commit = host.run(["git", "-C", REPO, "describe", "--always"]).strip()
    # A result that was kept just before changes nothing of what is measured.
    others = [".", f":!{RESULTS.relative_to(REPO)}"]
    if host.run(["git", "-C", REPO, "status", "--porcelain", "--", *others]).strip():
        commit += "-dirty"
    return {
        "machine": f"{cpus} CPUs, {platform.machine()}, QEMU without KVM",
        "kernel": platform.release(),
        "commit": commit,
    }


def tables(known: dict[str, Scenario]) -> dict[Path, str]:
    """Return the files that show kept results, each with its table."""
    return {
        REPO / "README.md": short(known, RESULTS),
        RESULTS.parent / "RESULTS.md": markdown(known.values(), RESULTS),
    }


def fill(path: Path, table: str) -> None:
    """Put the table between its marks in the file."""
    before, _, rest = path.read_text().partition(f"{BEGIN}\n")
    path.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")


def earlier(scenario: Scenario, path: Path) -> tuple[Runs, list[str]]:
    """Return the runs and commits of a kept result. Raises ValueError if none can be added."""
    if not scenario.adds:
        raise ValueError(f"runs of {scenario.name} cannot be added to others")
    if not path.exists():
        return {}, []
    document = json.loads(path.read_text())
    return kept_runs(document), document.get("commits", [document["commit"]])


def main() -> int:
    """0: all goals met, 1: not all, 64: no such scenario, 69: no lab."""
    parser = argparse.ArgumentParser(prog="make bench S=")
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", default="", help="only this variant of the scenario")
    parser.add_argument(
        "--trace", type=Path, nargs="*", default=[], help="block traces (trace-gaps, mrc)"
    )
    parser.add_argument("--add", action="store_true", help="add the runs to those that were kept")
    parser.add_argument(
        "--table", action="store_true", help="write the kept results into README.md and RESULTS.md"
    )
    options = parser.parse_args()
    known = scenarios()
    if options.table:
        for path, table in tables(known).items():
            fill(path, table)
        return 0
    if options.scenario is None:
        for scenario in known.values():
            print(f"  {scenario.name:18} {scenario.minutes:4.0f} min  {scenario.claim}")
        return 0
    chosen = known.get(options.scenario)
    if chosen is None or (options.variant and options.variant not in chosen.variants):
        choices = known if chosen is None else chosen.variants
        print(f"not known; choose from: {', '.join(choices)}", file=sys.stderr)
        return 64
    path = RESULTS / file_name(chosen.name, options.variant)
    traces = tuple(options.trace)
    try:
        before, commits = earlier(chosen, path) if options.add else ({}, [])
    except ValueError as error:
        print(f"{path.name}: {error}; leave out ADD=", file=sys.stderr)
        return 64
    try:
        report = chosen.run(
            Context(options.repetitions, options.seed, options.variant, traces, before)
        )
    except LabError as error:
        print(f"{chosen.name}: no result: {error}", file=sys.stderr)
        return 69
    document = report.document(machine())
    if commits:
        document["commits"] = [*commits, document["commit"]]
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    for name, goal in report.goals.items():
        verdict = "MISSED" if name in document["missed"] else "met"
        print(f"  {name:40} {report.ratios.get(name, float('nan')):9.3f}  {goal:10} {verdict}")
    print(json.dumps(document))
    return 0 if report.met else 1


if __name__ == "__main__":
    sys.exit(main())
