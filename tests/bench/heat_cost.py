# SPDX-License-Identifier: GPL-2.0-only
"""heat-cost: what counting misses by place adds to a request. I/O: builds a probe, runs a guest.

Instructions are counted in a guest (counted.py), in pairs with a probe that is built from the same
files but counts no misses.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bench import counted
from tests.bench.context import Context, Scenario
from tests.bench.counted import RequestPath
from tests.bench.report import Report
from tests.lab import host
from tests.lab.guest import CHECKOUT
from tests.lab.probe import PROBE

REQUESTS = 10_000
MISS_ADDED_MAX = 60
PATHS = {
    "bcache_hit": RequestPath("bcache", "read", "hit", 0),
    "bcache_miss": RequestPath("bcache", "read", "miss", MISS_ADDED_MAX),
    "dm_cache_hit": RequestPath("dm-cache", "read", "hit", 0),
    "dm_cache_miss": RequestPath("dm-cache", "read", "miss", MISS_ADDED_MAX),
}
_COUNTS = "heat_count(&heat[volume & (EB_VOLUMES - 1)], sector, kind, atomics)"


def probe_without_heat() -> Path:
    """Build the probe that counts no misses."""
    folder = CHECKOUT / "build" / "heat-cost"
    shutil.copytree(CHECKOUT / "bpf", folder / "bpf", dirs_exist_ok=True)
    header = folder / "bpf" / "heat.bpf.h"
    text = header.read_text()
    assert _COUNTS in text
    header.write_text(text.replace(_COUNTS, "false"))
    out, version = folder / "out", CHECKOUT / "controller" / "ebbgate" / "__init__.py"
    program = out / PROBE.name
    settings = (f"BUILD={out}", f"VERSION_FILE={version}")
    host.run(["make", "-C", header.parent, *settings, program])
    return program


def run(context: Context) -> Report:
    """Count each path with one probe and with the other."""
    probes = {"without": probe_without_heat(), "with": PROBE}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in (*probes, "added")}
    with counted.null_guest() as guest:
        for _ in range(context.repetitions):
            found: dict[str, dict[str, float]] = {name: {} for name in runs}
            for name, path in PATHS.items():
                context.say(name)
                for arm, program in probes.items():
                    found[arm][name] = counted.latency_probed(guest, path, REQUESTS, program)
                found["added"][name] = found["with"][name] - found["without"][name]
                context.say(f"  {found['added'][name]:.1f} of {found['with'][name]:.0f}")
            for name, figures in found.items():
                runs[name].append(figures)
    goals = {f"{name}_added_instr": f"<= {path.added_max}" for name, path in PATHS.items()}
    added = Report("heat-cost", runs, {}, {}).document({})["arms"]["added"]
    ratios = {f"{name}_added_instr": round(added[name]) for name in PATHS}
    return Report("heat-cost", runs, ratios, goals)


SCENARIO = Scenario("heat-cost", "misses are counted by place at a low cost", 3, run)
