# SPDX-License-Identifier: GPL-2.0-only
"""The page for Prometheus: the statuses of the daemon as metrics. Pure.

What is unknown is left out, never zero. Without a daemon only that is shown, and the age of its
last status: old counters would pass for current ones. The same holds for a volume without a
status for `SERIES_STALE_NS`. Labels have a bounded number of values: from a table here, or bounded
where they are counted (`signals.totals`). Open advice is no metric: it needs a look at the kernel,
which only `ebbgate doctor` and the page Advice take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ebbgate import __version__
from ebbgate.model.status import DaemonStatus
from ebbgate.store.queries import Statuses
from ebbgate.units import NS_PER_S
from ebbgate.web.metrics.families import Page
from ebbgate.web.metrics.volume import add_totals, add_volume

SERIES_STALE_NS: Final = 30 * NS_PER_S
"""A document older than this does not show the present state; the slowest tick is 10 s."""
_PROBE_STATES: Final = ("starting", "running", "down")


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """Sizes of the history on the disk; `limit_bytes`: of file and log together."""

    file_bytes: int
    log_bytes: int
    limit_bytes: int


def render(
    live: Statuses,
    now_unix_ns: int,
    daemon_alive: bool | None,
    openmetrics: bool,
    files: HistoryFiles | None = None,
) -> str:
    """Return the page of all statuses.

    `daemon_alive`: None if unknown; then fresh statuses are shown, without `ebbgate_up`.
    `openmetrics`: in that format, else in the older text format. `files`: None without a history.
    """
    page = Page()
    page.add("ebbgate_up", {}, daemon_alive)
    page.add("ebbgate_build", {"version": __version__}, 1)

    def age_ns(at_unix_ns: int) -> int:
        # One from the future is of before the clock was set back.
        return abs(now_unix_ns - at_unix_ns)

    def shown(at_unix_ns: int) -> bool:
        return daemon_alive is not False and age_ns(at_unix_ns) <= SERIES_STALE_NS

    if files is not None:
        # Not from the daemon, which may be silent because the log cannot grow.
        page.add("ebbgate_history_file_bytes", {}, files.file_bytes)
        page.add("ebbgate_history_log_bytes", {}, files.log_bytes)
        page.add("ebbgate_history_limit_bytes", {}, files.limit_bytes)
    if live.daemon is not None and shown(live.daemon.at_unix_ns):
        _add_daemon(page, live.daemon.status)
    for name, found in sorted(live.volumes.items()):
        page.add_ns("ebbgate_sample_age_seconds", {"volume": name}, age_ns(found.at_unix_ns))
        if shown(found.at_unix_ns):
            add_volume(page, name, found.status)
            add_totals(page, name, found.status.totals)
    return page.text(openmetrics=openmetrics)


def _add_daemon(page: Page, status: DaemonStatus) -> None:
    page.add_ns("ebbgate_start_time_seconds", {}, status.started_unix_ns)
    state = (status.probe.state or "").partition(":")[0]
    if state in _PROBE_STATES:
        labels = {"probe": status.probe.kind or ""}
        page.add_states("ebbgate_probe_state", labels, _PROBE_STATES, state)
    page.add("ebbgate_probe_restarts", {}, status.probe.restarts)
    page.add("ebbgate_history_written", {}, status.history.written)
    page.add("ebbgate_history_dropped", {}, status.history.dropped)
    if status.policies.problems is not None:
        page.add("ebbgate_policy_problems", {}, len(status.policies.problems))
