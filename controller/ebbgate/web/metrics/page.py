# SPDX-License-Identifier: GPL-2.0-only
"""The page for Prometheus: the statuses of the daemon as metrics. Pure.

What is unknown is left out, never zero. Without a daemon only that is shown, and the age of its
last status: old counters would pass for current ones. The same holds for a volume without a
status for `SERIES_STALE_NS`. Labels have a bounded number of values: from a table here, or bounded
where they are counted (`signals.totals`). Open advice is no metric: it needs a look at the kernel,
which only `ebbgate doctor` and the page Advice take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ebbgate import __version__
from ebbgate.model.status_json import status_from_json, totals_from_json
from ebbgate.store.queries import Live
from ebbgate.units import NS_PER_S
from ebbgate.web.metrics.families import Page
from ebbgate.web.metrics.volume import add_totals, add_volume, mapping

SERIES_STALE_NS: Final = 30 * NS_PER_S
"""A document older than this says nothing about now; the slowest tick is 10 s."""
_PROBE_STATES: Final = ("starting", "running", "down")


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """Sizes of the history on the disk; `limit_bytes`: of file and log together."""

    file_bytes: int
    log_bytes: int
    limit_bytes: int


def render(
    live: Mapping[str, Live],
    now_unix_ns: int,
    daemon_alive: bool | None,
    openmetrics: bool,
    files: HistoryFiles | None = None,
) -> str:
    """Return the page of all statuses (the daemon's own is under the empty name).

    `daemon_alive`: None if unknown; then fresh statuses are shown, without `ebbgate_up`.
    `openmetrics`: in that format, else in the older text format. `files`: None without a history.
    """
    page = Page()
    page.add("ebbgate_up", {}, daemon_alive)
    page.add("ebbgate_build", {"version": __version__}, 1)
    shown = {
        name: found
        for name, found in live.items()
        if daemon_alive is not False and now_unix_ns - found.at_unix_ns <= SERIES_STALE_NS
    }
    if files is not None:
        # Not from the daemon, which may be silent because the log cannot grow.
        page.add("ebbgate_history_file_bytes", {}, files.file_bytes)
        page.add("ebbgate_history_log_bytes", {}, files.log_bytes)
        page.add("ebbgate_history_limit_bytes", {}, files.limit_bytes)
    if "" in shown:
        _add_daemon(page, shown[""].document)
    for name, found in sorted(live.items()):
        if not name:
            continue
        # After a clock was set back a document may come from the future.
        age_ns = max(0, now_unix_ns - found.at_unix_ns)
        page.add("ebbgate_sample_age_seconds", {"volume": name}, age_ns / NS_PER_S)
        if name in shown:
            status = status_from_json(found.document)
            add_volume(page, name, status)
            add_totals(page, name, totals_from_json(status.totals))
    return page.text(openmetrics=openmetrics)


def _add_daemon(page: Page, document: Mapping[str, Any]) -> None:
    started, probe = document.get("started_unix_ns"), mapping(document.get("probe"))
    if isinstance(started, int):
        page.add("ebbgate_start_time_seconds", {}, started / NS_PER_S)
    state = str(probe.get("state", "")).partition(":")[0]
    if state in _PROBE_STATES:
        labels = {"probe": probe.get("kind", "")}
        page.add_states("ebbgate_probe_state", labels, _PROBE_STATES, state)
    page.add("ebbgate_probe_restarts", {}, probe.get("restarts"))
    history = mapping(document.get("history"))
    page.add("ebbgate_history_written", {}, history.get("written"))
    page.add("ebbgate_history_dropped", {}, history.get("dropped"))
    problems = mapping(document.get("policies")).get("problems")
    page.add("ebbgate_policy_problems", {}, len(problems) if isinstance(problems, list) else None)
