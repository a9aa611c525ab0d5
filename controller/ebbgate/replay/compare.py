# SPDX-License-Identifier: GPL-2.0-only
"""What a policy would have decided on the history of a volume, beside what another would. Pure.

Both are run through the real evaluation with their state carried along; what they differ in is
folded into intervals. Only what the history keeps can be judged, and `notes` says what it does not
keep. What was measured then came of what was decided then: a policy that drains sooner would have
seen another dirty level, and the rollback guard other latencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ebbgate.model.decision import Gate, GateKind
from ebbgate.model.volume import Kind
from ebbgate.policy.engine import IDLE_DESTAGE, Outcome, Policy, State, step
from ebbgate.replay.history_events import Event, Gap, HistoryWindow, covered_ns, events, gaps_of
from ebbgate.replay.notes import notes_of
from ebbgate.replay.setting_text import SETTINGS, ReplaySetting, text_of
from ebbgate.units import NS_PER_MS, NS_PER_S

PolicyAt = Callable[[int], Policy]
"""The policy at a time (Unix ns): a schedule may change it. The same object for the same policy."""

DIFFERENCES_MAX: Final = 1000
"""More are not read by anybody; the shortest are left out."""
_WAITS_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Difference:
    """For so long the two wanted different things. `before`: what the other policy wanted."""

    at_unix_ns: int
    until_unix_ns: int
    setting: ReplaySetting
    before: str
    after: str
    why_before: str
    why_after: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """`frames`: samples that were looked at; `coverage_ratio`: share (0..1) of the time with any.

    `differences`: in the order of time, at most DIFFERENCES_MAX; `left_out`: how many shorter ones
    there are. `destage_ns`: for how long each policy, the other one first, wanted which gate.
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
    """What is wanted of one setting from `at_ns` on. `text`: None in a hole."""

    at_ns: int
    text: str | None
    why: str


_Stands = dict[ReplaySetting, list[_SettingSpan]]


def dry_run(past: HistoryWindow, policy: PolicyAt, against: PolicyAt) -> DryRun:
    """`policy` beside `against` on what the history has."""
    gaps = gaps_of(past.edges)
    after, before = _run(past, gaps, policy), _run(past, gaps, against)
    found = [
        difference
        for setting in SETTINGS[past.kind]
        for difference in _differences(setting, before[setting], after[setting], past.until_unix_ns)
    ]
    kept = sorted(found, key=_length_ns, reverse=True)[:DIFFERENCES_MAX]
    length_ns = past.until_unix_ns - past.since_unix_ns
    return DryRun(
        past.since_unix_ns,
        past.until_unix_ns,
        frames=len(past.samples),
        coverage_ratio=min(1.0, covered_ns(past) / length_ns) if length_ns > 0 else 0.0,
        differences=tuple(sorted(kept, key=lambda each: (each.at_unix_ns, each.setting))),
        left_out=len(found) - len(kept),
        destage_ns=(_spent(before, past), _spent(after, past)),
        notes=tuple(notes_of(past, gaps, (policy, against))),
    )


def document(run: DryRun) -> dict[str, Any]:
    """JSON-able; times in Unix seconds."""
    before, after = run.destage_ns
    return {
        "from_unix_s": run.from_unix_ns / NS_PER_S,
        "until_unix_s": run.until_unix_ns / NS_PER_S,
        "frames": run.frames,
        "coverage_ratio": run.coverage_ratio,
        "differences": [
            {
                "at_unix_s": each.at_unix_ns / NS_PER_S,
                "until_unix_s": each.until_unix_ns / NS_PER_S,
                "setting": str(each.setting),
                "before": each.before,
                "after": each.after,
                "why_before": each.why_before,
                "why_after": each.why_after,
            }
            for each in run.differences
        ],
        "left_out": run.left_out,
        "destage_s": {
            "before": {text: spent / NS_PER_S for text, spent in before.items()},
            "after": {text: spent / NS_PER_S for text, spent in after.items()},
        },
        "notes": list(run.notes),
    }


# ---- one policy ---------------------------------------------------------------------------------
@dataclass(slots=True)
class _Runner:
    """One policy on its way through the history."""

    kind: Kind
    policy_at: PolicyAt
    state: State = field(default_factory=State)
    stands: _Stands = field(default_factory=dict)
    key: tuple[object, ...] = ()
    _fitted: dict[tuple[int, int], Policy] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        whole = self.policy_at(event.at_ns)
        policy = self._of_then(whole, event.wait_ns)
        self.state, outcome = step(self.state, event.what, policy, event.at_ns)
        key = (event.blank, event.mixed, policy.overlay, *_key(outcome))
        if key == self.key:
            return
        self.key = key
        decision = outcome.decision()
        for setting in SETTINGS[self.kind]:
            text, why = text_of(setting, decision, self.state, whole, mixed=event.mixed)
            self._add(setting, _SettingSpan(event.at_ns, None if event.blank else text, why))

    def _add(self, setting: ReplaySetting, stand: _SettingSpan) -> None:
        stands = self.stands.setdefault(setting, [])
        if not stands or stands[-1].text != stand.text:
            stands.append(stand)

    def _of_then(self, policy: Policy, wait_ns: int | None) -> Policy:
        """The policy on what is kept: with the wait that was learned then, since the gaps that it
        was learned from are not, and without stream_bypass, which could only rest.
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
            self._fitted[key] = replace(policy, destage=destage, streams=None)
        return self._fitted[key]


def _run(past: HistoryWindow, gaps: Sequence[Gap], policy_at: PolicyAt) -> _Stands:
    def wait_at(at_ns: int) -> int | None:
        destage = policy_at(at_ns).destage
        return None if destage is None else destage.wait_ns

    runner = _Runner(past.kind, policy_at)
    for setting in SETTINGS[past.kind]:
        runner.stands[setting] = []
    for event in events(past, gaps, wait_at):
        runner.take(event)
    return runner.stands


def _key(outcome: Outcome) -> tuple[object, ...]:
    """Return a key that differs where the decision may differ; the decision itself costs more.

    The pace of idle_destage is measured, not decided.
    """
    ruling = outcome.ruling
    gate = ruling.gate
    if gate is not None and ruling.by == IDLE_DESTAGE:
        gate = Gate(GateKind.PACED if gate.kind is GateKind.PULSED else gate.kind)
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
    """From when to when both were unchanged."""
    times = sorted({stand.at_ns for stand in (*before, *after)})
    old_at = new_at = -1
    for number, since_ns in enumerate(times):
        while old_at + 1 < len(before) and before[old_at + 1].at_ns <= since_ns:
            old_at += 1
        while new_at + 1 < len(after) and after[new_at + 1].at_ns <= since_ns:
            new_at += 1
        end_ns = times[number + 1] if number + 1 < len(times) else max(until_ns, since_ns)
        if old_at >= 0 and new_at >= 0 and end_ns > since_ns:
            yield since_ns, end_ns, before[old_at], after[new_at]


def _spent(stands: _Stands, past: HistoryWindow) -> dict[str, int]:
    """How long each gate was wanted."""
    spent: dict[str, int] = {}
    mine = stands.get(ReplaySetting.DESTAGE, [])
    for since_ns, end_ns, stand, _ in _side_by_side(mine, mine, past.until_unix_ns):
        if stand.text is not None:
            spent[stand.text] = spent.get(stand.text, 0) + end_ns - since_ns
    return spent


def _length_ns(difference: Difference) -> int:
    return difference.until_unix_ns - difference.at_unix_ns
