# SPDX-License-Identifier: GPL-2.0-only
"""Compares what two policies would have decided on the history of a volume. Pure.

Both run through the engine with their state carried along; what they differ in is folded into
intervals. Only what the history keeps can be judged, and `notes` lists what it does not keep. The
measurements are the result of what was decided then: a policy that drains sooner would have seen
another dirty level, and the rollback guard other latencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Final

from ebbgate.model.decision import Decision, Gate, GateKind
from ebbgate.model.volume import Kind
from ebbgate.policy.engine import IDLE_DESTAGE, STREAM_BYPASS, Outcome, Phase, Policy, State, step
from ebbgate.replay.history_events import (
    Gap,
    HistoryEvent,
    HistoryWindow,
    covered_ns,
    events,
    gaps_of,
    notes_of,
)
from ebbgate.units import NS_PER_MS, NS_PER_S, format_bytes, format_rate

KERNELS: Final = "the kernel's own setting"


class ReplaySetting(StrEnum):
    """A setting in which policies may differ."""

    DESTAGE = "destage"
    CUTOFF = "sequential_cutoff"
    SPLIT = "max_sectors_kb"
    CONGESTION = "congestion_bypass"


SETTINGS: Final = {
    Kind.BCACHE: (ReplaySetting.DESTAGE, ReplaySetting.CUTOFF, ReplaySetting.CONGESTION),
    Kind.DM_CACHE: (ReplaySetting.DESTAGE, ReplaySetting.SPLIT),
    Kind.DM_WRITECACHE: (),
}

PolicyAt = Callable[[int], Policy]
"""Returns the policy at a time (Unix ns), as the same object if it is the same policy."""

DIFFERENCES_MAX: Final = 1000
"""The shortest beyond this number are left out."""
_WAITS_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Difference:
    """An interval in which the two policies differ. `before`: what the other policy decided."""

    at_unix_ns: int
    until_unix_ns: int
    setting: ReplaySetting
    before: str
    after: str
    why_before: str
    why_after: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a comparison.

    - `frames`: the number of samples; `coverage_ratio`: share (0..1) of the time that has any.
    - `differences`: in the order of time, at most DIFFERENCES_MAX.
    - `left_out`: how many shorter ones there are.
    - `destage_ns`: how long each policy, the other one first, decided on which gate.
    """

    from_unix_ns: int
    until_unix_ns: int
    frames: int
    coverage_ratio: float
    differences: tuple[Difference, ...]
    left_out: int
    destage_ns: tuple[dict[str, int], dict[str, int]]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _SettingSpan:
    """What was decided for one setting from `at_ns` on. `text`: None where samples are missing."""

    at_ns: int
    text: str | None
    why: str


_Spans = dict[ReplaySetting, list[_SettingSpan]]


def dry_run(history: HistoryWindow, policy: PolicyAt, against: PolicyAt) -> DryRun:
    """Compare `policy` with `against` on the history."""
    gaps = gaps_of(history.edges)
    after, before = _run(history, gaps, policy), _run(history, gaps, against)
    found = [
        difference
        for setting in SETTINGS[history.kind]
        for difference in _differences(
            setting, before[setting], after[setting], history.until_unix_ns
        )
    ]
    # The longest ones.
    found.sort(key=lambda each: each.at_unix_ns - each.until_unix_ns)
    kept = found[:DIFFERENCES_MAX]
    length_ns = history.until_unix_ns - history.since_unix_ns
    return DryRun(
        history.since_unix_ns,
        history.until_unix_ns,
        frames=len(history.samples),
        coverage_ratio=min(1.0, covered_ns(history) / length_ns) if length_ns > 0 else 0.0,
        differences=tuple(sorted(kept, key=lambda each: (each.at_unix_ns, each.setting))),
        left_out=len(found) - len(kept),
        destage_ns=(_spent(before, history), _spent(after, history)),
        notes=tuple(notes_of(history, gaps, (policy, against))),
    )


def dry_run_to_json(run: DryRun) -> dict[str, object]:
    """Return it as JSON; times in Unix seconds."""
    before, after = run.destage_ns
    return {
        "from_unix_s": run.from_unix_ns / NS_PER_S,
        "until_unix_s": run.until_unix_ns / NS_PER_S,
        "frames": run.frames,
        "coverage_ratio": run.coverage_ratio,
        "differences": [_difference_to_json(each) for each in run.differences],
        "left_out": run.left_out,
        "destage_s": {"before": _seconds(before), "after": _seconds(after)},
        "notes": list(run.notes),
    }


def _difference_to_json(difference: Difference) -> dict[str, object]:
    document = asdict(difference)
    times = {name: document.pop(f"{name}_ns") for name in ("at_unix", "until_unix")}
    return {**{f"{name}_s": at_ns / NS_PER_S for name, at_ns in times.items()}, **document}


def _seconds(spent_ns: dict[str, int]) -> dict[str, float]:
    return {text: spent / NS_PER_S for text, spent in spent_ns.items()}


# ---- one policy ---------------------------------------------------------------------------------
@dataclass(slots=True)
class _Runner:
    """Runs one policy through the history."""

    kind: Kind
    policy_at: PolicyAt
    spans: _Spans
    state: State = field(default_factory=State)
    key: tuple[object, ...] = ()
    _fitted: dict[tuple[int, int], Policy] = field(default_factory=dict)

    def take(self, event: HistoryEvent) -> None:
        whole = self.policy_at(event.at_ns)
        policy = self._replayable(whole, event.wait_ns)
        self.state, outcome = step(self.state, event.payload, policy, event.at_ns)
        key = (event.blank, event.mixed, policy.overlay, *_key(outcome))
        if key == self.key:
            return
        self.key = key
        decision = outcome.decision()
        for setting in SETTINGS[self.kind]:
            text, why = setting_text(setting, decision, self.state, whole, mixed=event.mixed)
            self._add(setting, _SettingSpan(event.at_ns, None if event.blank else text, why))

    def _add(self, setting: ReplaySetting, span: _SettingSpan) -> None:
        spans = self.spans[setting]
        if not spans or spans[-1].text != span.text:
            spans.append(span)

    def _replayable(self, policy: Policy, wait_ns: int | None) -> Policy:
        """Return the policy for what the history keeps.

        It has the wait that was learned then, since the gaps are not kept, and no stream_bypass,
        which could only rest.
        """
        destage = policy.destage
        if wait_ns is None or destage is None or destage.wait_ns is not None:
            wait_ns = 0
        wait_ns -= wait_ns % NS_PER_MS
        key = (id(policy), wait_ns)
        if key not in self._fitted:
            if len(self._fitted) >= _WAITS_MAX:
                self._fitted.clear()
            if wait_ns and destage is not None:
                destage = replace(destage, wait_ns=wait_ns)
            self._fitted[key] = replace(policy, destage=destage, streams=None, promotion=None)
        return self._fitted[key]


def _run(history: HistoryWindow, gaps: Sequence[Gap], policy_at: PolicyAt) -> _Spans:
    def wait_at(at_ns: int) -> int | None:
        destage = policy_at(at_ns).destage
        return None if destage is None else destage.wait_ns

    runner = _Runner(history.kind, policy_at, {setting: [] for setting in SETTINGS[history.kind]})
    for event in events(history, gaps, wait_at):
        runner.take(event)
    return runner.spans


def _key(outcome: Outcome) -> tuple[object, ...]:
    """Return a key that differs where the decision may differ; the decision itself costs more.

    The pace and the rests of idle_destage are measured, not decided; its phase tells the rest.
    """
    ruling = outcome.ruling
    gate = ruling.gate
    if gate is not None and ruling.by == IDLE_DESTAGE:
        gate = None if outcome.destage.pacing else Gate(gate.kind)
    return (
        gate,
        ruling.by,
        outcome.destage.phase,
        tuple(rule.strategy for rule in outcome.rules_in_force),
        outcome.unsupported,
    )


# ---- both ---------------------------------------------------------------------------------------
def _differences(
    setting: ReplaySetting,
    before: Sequence[_SettingSpan],
    after: Sequence[_SettingSpan],
    until_ns: int,
) -> Iterator[Difference]:
    for since_ns, end_ns, old, new in _side_by_side(before, after, until_ns):
        if old.text is not None and new.text is not None and old.text != new.text:
            yield Difference(since_ns, end_ns, setting, old.text, new.text, old.why, new.why)


def _side_by_side(
    before: Sequence[_SettingSpan], after: Sequence[_SettingSpan], until_ns: int
) -> Iterator[tuple[int, int, _SettingSpan, _SettingSpan]]:
    """Yield the intervals in which both are unchanged."""
    times = sorted({span.at_ns for span in (*before, *after)})
    old_at = new_at = -1
    for number, since_ns in enumerate(times):
        while old_at + 1 < len(before) and before[old_at + 1].at_ns <= since_ns:
            old_at += 1
        while new_at + 1 < len(after) and after[new_at + 1].at_ns <= since_ns:
            new_at += 1
        end_ns = times[number + 1] if number + 1 < len(times) else max(until_ns, since_ns)
        if old_at >= 0 and new_at >= 0 and end_ns > since_ns:
            yield since_ns, end_ns, before[old_at], after[new_at]


def _spent(spans: _Spans, history: HistoryWindow) -> dict[str, int]:
    """Return how long each gate was decided on."""
    spent: dict[str, int] = {}
    mine = spans.get(ReplaySetting.DESTAGE, [])
    for since_ns, end_ns, span, _ in _side_by_side(mine, mine, history.until_unix_ns):
        if span.text is not None:
            spent[span.text] = spent.get(span.text, 0) + end_ns - since_ns
    return spent


# ---- text of a setting ---------------------------------------------------------------------------
def setting_text(
    setting: ReplaySetting, decision: Decision, state: State, policy: Policy, *, mixed: bool
) -> tuple[str, str]:
    """Return what was decided for a setting, and why."""
    if setting is ReplaySetting.DESTAGE:
        return _gate_text(decision, state, policy, mixed), _why(decision, decision.gate_strategy)
    cutoff = decision.sequential_cutoff_bytes
    if setting is ReplaySetting.CUTOFF and cutoff is not None:
        return format_bytes(cutoff), _why(decision, decision.cutoff_strategy)
    if setting is ReplaySetting.CONGESTION and decision.congestion_bypass is False:
        by = next(p.strategy for p in decision.proposals if p.congestion_bypass is False)
        return "off", _why(decision, by)
    if policy.streams is not None:
        return f"decided by {STREAM_BYPASS}", "it needs run lengths, which are not kept"
    return KERNELS, "nothing else was decided"


def _gate_text(decision: Decision, state: State, policy: Policy, mixed: bool) -> str:
    gate, by = decision.gate, decision.gate_strategy
    destage = by == IDLE_DESTAGE
    if destage and mixed and state.destage.phase is Phase.UNKNOWN:
        return f"decided by {IDLE_DESTAGE}"
    if gate is None or gate.kind is GateKind.RELEASED:
        return KERNELS
    rate, depth = policy.limits.destage_rate.high, policy.limits.destage_depth.high
    if gate.kind in (GateKind.HELD, GateKind.CLOSED):
        return str(gate.kind)
    if gate.kind is GateKind.OPEN and not gate.rate_bytes_per_s:
        return "open"
    if gate.kind is GateKind.RESTING and rate is None:
        # A rest is part of how a gap is used; only dm-cache is paced in a gap.
        return "paced" if state.destage.pace.gate.depth_ios else "open"
    if not destage or not state.destage.pacing:
        return f"{gate.depth_ios} at once" if gate.depth_ios else format_rate(gate.rate_bytes_per_s)
    if gate.depth_ios:
        return "paced" if depth is None else f"paced, at most {depth} at once"
    return "paced" if rate is None else f"paced, at most {format_rate(rate)}"


def _why(decision: Decision, strategy: str) -> str:
    found = next((p.reason for p in decision.proposals if p.strategy == strategy), "")
    return f"{strategy}: {found}" if found else "nothing else was decided"
