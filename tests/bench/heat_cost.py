# SPDX-License-Identifier: GPL-2.0-only
"""heat-cost: what counting misses adds to a request. I/O: builds two probes, runs a guest.

Instructions are counted in a guest (counted.py), with the probe and with two that are built from
the same files: one counts misses by place, but not by owner, and one does not count them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bench import counted
from tests.bench.context import Context, Scenario
from tests.bench.counted import RequestPath
from tests.bench.report import Report, medians
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
_PLACES = "heat_count(&heat[volume & (EB_VOLUMES - 1)], sector, kind, atomics)"
_OWNERS = "bpf_map_lookup_elem(&attributions, &volume)"
_LEFT_OUT = {
    "none": {"heat.bpf.h": (_PLACES, "false"), "attribution.bpf.h": (_OWNERS, "NULL")},
    "places": {"attribution.bpf.h": (_OWNERS, "NULL")},
}
"""By arm, what other probes have in place of a text of a file."""


def probe_without(arm: str) -> Path:
    """Build the probe of an arm."""
    folder = CHECKOUT / "build" / "heat-cost" / arm
    shutil.copytree(CHECKOUT / "bpf", folder / "bpf", dirs_exist_ok=True)
    for name, (old, new) in _LEFT_OUT[arm].items():
        header = folder / "bpf" / name
        text = header.read_text()
        assert text.count(old) == 1, name
        header.write_text(text.replace(old, new))
    out, version = folder / "out", CHECKOUT / "controller" / "ebbgate" / "__init__.py"
    program = out / PROBE.name
    settings = (f"BUILD={out}", f"VERSION_FILE={version}")
    host.run(["make", "-C", folder / "bpf", *settings, program])
    return program


def run(context: Context) -> Report:
    """Count each path with each probe."""
    probes = {**{arm: probe_without(arm) for arm in _LEFT_OUT}, "both": PROBE}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in (*probes, "added")}
    with counted.null_guest() as guest:
        for _ in range(context.repetitions):
            found: dict[str, dict[str, float]] = {name: {} for name in runs}
            for name, path in PATHS.items():
                context.say(name)
                # As in path_cost, the first run has the disks take memory.
                counted.latency_probed(guest, path, REQUESTS, PROBE)
                for arm, program in probes.items():
                    found[arm][name] = counted.latency_probed(guest, path, REQUESTS, program)
                by_place = found["places"][name] - found["none"][name]
                by_owner = found["both"][name] - found["places"][name]
                found["added"] |= {f"{name}_places": by_place, f"{name}_owners": by_owner}
                found["added"][name] = by_place + by_owner
                context.say(f"  {by_place:.1f} and {by_owner:.1f} of {found['both'][name]:.0f}")
            for name, figures in found.items():
                runs[name].append(figures)
    goals = {f"{name}_added_instr": f"<= {path.added_max}" for name, path in PATHS.items()}
    added = medians(runs["added"])
    ratios = {f"{name}_added_instr": round(value) for name, value in added.items()}
    return Report("heat-cost", runs, ratios, goals)


SCENARIO = Scenario("heat-cost", "misses are counted by place and owner at a low cost", 4, run)
