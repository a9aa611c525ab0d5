# SPDX-License-Identifier: GPL-2.0-only
"""What a dry run on the history cannot know, said to whoever reads it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ebbgate.model.volume import Kind
from ebbgate.policy.engine import Policy, Rule
from ebbgate.replay.history_events import UNKEPT, Gap, HistoryWindow
from ebbgate.units import NS_PER_S, format_ns

_ALWAYS: Final = (
    "what was measured came of what was decided then: another policy would have seen another dirty"
    " level and other latencies",
    "overrides by people are left out, and the rollback guard goes by the latencies of then",
)


def notes_of(
    past: HistoryWindow, gaps: Sequence[Gap], policies: Iterable[Callable[[int], Policy]]
) -> Iterator[str]:
    """Sentences, the most important first."""
    used = _used(past, policies)
    if not past.samples:
        yield "the history has nothing of this time"
        return
    yield from dict.fromkeys(_of_rules(used))
    if past.kind is Kind.DM_WRITECACHE:
        yield "dm-writecache takes no setting while it is in use: there is nothing to decide"
    if any(policy.streams is not None for policy in used):
        yield (
            "run lengths are not kept, so what stream_bypass would do is not known; only rules set"
            " the cutoff here"
        )
    yield from _of_minutes(past)
    yield from _of_gaps(past, gaps, used)
    yield from _ALWAYS


def _used(past: HistoryWindow, policies: Iterable[Callable[[int], Policy]]) -> list[Policy]:
    found: dict[int, Policy] = {}
    for policy_at in policies:
        for row in past.samples[:: max(1, len(past.samples) // 1000)]:
            policy = policy_at(row["at_unix_ns"])
            found[id(policy)] = policy
    return list(found.values())


def _of_rules(used: Iterable[Policy]) -> Iterator[str]:
    for rule in (rule for policy in used for rule in policy.rules):
        lost = sorted(_signals(rule) & set(UNKEPT))
        if lost:
            yield (
                f"rule {rule.name} looks at {' and '.join(lost)}, which the history does not keep:"
                " here that never holds"
            )


def _signals(rule: Rule) -> set[str]:
    return {check.signal for groups in (rule.when, rule.until) for g in groups for check in g}


def _of_minutes(past: HistoryWindow) -> Iterator[str]:
    minutes = [row for row in past.samples if row["span_ns"] > NS_PER_S]
    if not minutes:
        return
    mixed = sum(row["idle"] is not None and 0 < row["idle"] < 1 for row in minutes)
    yield (
        f"of {len(minutes)} minutes only their means are kept, so shorter peaks are not seen; in"
        f" {mixed} of them the load came and went, and what idle_destage would do is not known"
    )


def _of_gaps(past: HistoryWindow, gaps: Sequence[Gap], used: Iterable[Policy]) -> Iterator[str]:
    if not any(policy.destage is not None for policy in used):
        return
    yield (
        "the gaps that the wait is learned from are not kept: where a policy says `wait: auto`, it"
        " is as it was then; how fast a gap drains is not known"
    )
    own = [p.destage.wait_ns for p in used if p.destage is not None and p.destage.wait_ns]
    shortest = max((gap.wait_ns for gap in gaps), default=0)
    if own and gaps and min(own) < shortest:
        yield (
            f"gaps shorter than the wait of then (up to {format_ns(shortest)}) are not known, so a"
            f" wait of {format_ns(min(own))} would have found more"
        )
    if own and any(row["span_ns"] <= NS_PER_S for row in past.samples) and not gaps:
        yield "no edges are kept of this time: whether it was idle goes by the wait of then"
