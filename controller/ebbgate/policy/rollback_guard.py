# SPDX-License-Identifier: GPL-2.0-only
"""Rolls a setting back if users wait longer after it changed, and suspends it for a time. Pure.

For each direction the guard remembers users' latency, decayed, since a setting last changed. At the
next change that memory becomes *before*. If soon after, under a similar load, the p99 is above the
bound in several windows in a row, the setting goes back to what it was, for a time that doubles
each time. Two settings are watched: `streams` (the cutoff, or split requests) and `gate` (destage
under load; in a gap there is nobody to notice).

    worse     p99 > worse_ratio x before, and by more than worse_ns_min
    similar   requests and bytes per second within load_ratio_max of before, either way

Unknown latencies, too few requests or another load count neither for nor against.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.records import Direction
from ebbgate.units import HOUR_NS, MINUTE_NS, NS_PER_MS, NS_PER_S, doubled


class WatchedSetting(StrEnum):
    """A setting that the guard watches and may roll back."""

    GATE = "gate"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class RollbackParams:
    """What a policy may set.

    - `worse_ratio`, `worse_ns_min`: the bound; less than a disk's seek is not noticed.
    - `requests_min`: a window with fewer requests has no meaningful p99.
    - `before_requests_min`: the same for the memory.
    - `load_ratio_max`: a load that differs by more is not similar.
    - `windows`: this many in a row must be worse.
    - `settle_ns`: for this long after a change, windows still hold what was before it.
    - `watch_ns`: a change is judged for this long; later the load has changed, too.
    - `half_life_ns`: of the memory; `before_age_ns_max`: an older memory is not used.
    - `share_min`: a path with a smaller share of the requests (0..1) is ignored.
    - `suspend_ns`: the first suspension, doubled each time up to `suspend_ns_max`.
    - `forget_ns`: after this time without a rollback, suspensions start at `suspend_ns` again.
    """

    worse_ratio: float = 2.0
    worse_ns_min: int = 10 * NS_PER_MS
    requests_min: int = 30
    before_requests_min: int = 100
    load_ratio_max: float = 2.0
    windows: int = 3
    settle_ns: int = 3 * NS_PER_S // 2
    watch_ns: int = MINUTE_NS
    half_life_ns: int = 20 * NS_PER_S
    before_age_ns_max: int = 30 * NS_PER_S
    share_min: float = 0.02
    suspend_ns: int = MINUTE_NS
    suspend_ns_max: int = HOUR_NS
    forget_ns: int = 4 * HOUR_NS


@dataclass(frozen=True, slots=True)
class LatencySample:
    """Users' latency and load in one direction. `ios`: the decayed number of requests."""

    p99_ns: float
    iops: float
    bytes_per_s: float
    ios: float
    at_ns: int


LatencySamples = Mapping[Direction, LatencySample]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a setting was rolled back."""

    setting: WatchedSetting
    direction: Direction
    before_ns: float
    after_ns: float
    bound_ns: float
    at_ns: int


@dataclass(frozen=True, slots=True)
class Watched:
    """One setting.

    - `value`: what is in force since `since_ns`; None if the strategy rests.
    - `since_change`: users' latency since then.
    - `before`: their latency before that; empty if nothing is judged.
    - `worse`: how many windows in a row were worse.
    - `suspensions`: in a row; `rollbacks`: in all.
    """

    value: Hashable = None
    since_ns: int = 0
    since_change: LatencySamples = field(default_factory=dict)
    before: LatencySamples = field(default_factory=dict)
    worse: int = 0
    suspended_until_ns: int = 0
    suspensions: int = 0
    verdict: Verdict | None = None
    rollbacks: int = 0

    def suspended(self, now_ns: int) -> bool:
        """Return whether the setting is suspended."""
        return now_ns < self.suspended_until_ns


@dataclass(frozen=True, slots=True)
class RollbackState:
    """All settings. `sampled_ns`: the end of the last window that was judged."""

    watched: Mapping[WatchedSetting, Watched] = field(default_factory=dict)
    sampled_ns: int = 0

    def of(self, setting: WatchedSetting) -> Watched:
        """Return one setting."""
        return self.watched.get(setting, Watched())

    def rollbacks(self) -> Mapping[str, int]:
        """Return how often each setting was rolled back."""
        return {str(setting): self.of(setting).rollbacks for setting in WatchedSetting}


def on_frame(
    state: RollbackState,
    frame: Frame,
    values: Mapping[WatchedSetting, Hashable],
    params: RollbackParams,
) -> RollbackState:
    """Handle a tick. `values`: what the strategies set; a setting that rests is left out."""
    due = frame.window_ns > 0 and frame.at_ns - state.sampled_ns >= frame.window_ns
    watched = {}
    for setting in WatchedSetting:
        seen = latency_samples(frame, setting, params) if due else {}
        before = state.of(setting)
        watched[setting] = _step(before, setting, values.get(setting), frame.at_ns, seen, params)
    return RollbackState(watched, frame.at_ns if due else state.sampled_ns)


def verdict(state: RollbackState, setting: WatchedSetting, now_ns: int) -> Verdict | None:
    """Return why the setting is suspended; None if it is not."""
    watched = state.of(setting)
    return watched.verdict if watched.suspended(now_ns) else None


def latency_samples(
    frame: Frame, setting: WatchedSetting, params: RollbackParams
) -> LatencySamples:
    """Return users' latency over the frame's window, where there were enough requests.

    For `streams` the path that bypasses the cache is left out: it is meant to be slow.
    """
    found = {}
    for direction in Direction:
        paths = [
            latency
            for (way, path), latency in frame.paths.items()
            if way is direction and not (setting is WatchedSetting.STREAMS and path == "bypass")
        ]
        sample = _sample(paths, frame, params)
        if sample is not None:
            found[direction] = sample
    return found


def _sample(paths: list[PathLatency], frame: Frame, params: RollbackParams) -> LatencySample | None:
    ios = sum(path.ios for path in paths)
    if ios < params.requests_min or frame.window_ns <= 0:
        return None
    slow = [path.p99_ns for path in paths if path.p99_ns and path.ios >= params.share_min * ios]
    if not slow:
        return None
    seconds = frame.window_ns / NS_PER_S
    moved = sum(path.bytes for path in paths)
    return LatencySample(max(slow), ios / seconds, moved / seconds, ios, frame.at_ns)


def _step(
    old: Watched,
    setting: WatchedSetting,
    proposed: Hashable,
    now_ns: int,
    seen: LatencySamples,
    params: RollbackParams,
) -> Watched:
    value = None if old.suspended(now_ns) else proposed
    new = old
    if value != old.value:
        before = _usable(old.since_change, now_ns, params) if value is not None else {}
        new = replace(old, value=value, since_ns=now_ns, since_change={}, before=before, worse=0)
    if not seen or now_ns - new.since_ns < params.settle_ns:
        return new
    if new.before:
        new = _judge(new, setting, now_ns, seen, params)
    decayed = {
        way: _decay_add(new.since_change.get(way), part, params) for way, part in seen.items()
    }
    return replace(new, since_change={**new.since_change, **decayed})


def _usable(samples: LatencySamples, now_ns: int, params: RollbackParams) -> LatencySamples:
    """Return the samples that are fresh and large enough to compare with."""
    return {
        way: part
        for way, part in samples.items()
        if now_ns - part.at_ns <= params.before_age_ns_max
        and part.ios >= params.before_requests_min
    }


def _judge(
    watched: Watched,
    setting: WatchedSetting,
    now_ns: int,
    seen: LatencySamples,
    params: RollbackParams,
) -> Watched:
    if now_ns - watched.since_ns > params.watch_ns:
        return replace(watched, before={}, worse=0)
    compared = [
        Verdict(setting, way, then.p99_ns, seen[way].p99_ns, bound_ns(then, params), now_ns)
        for way, then in watched.before.items()
        if way in seen and _similar_load(then, seen[way], params)
    ]
    if not compared:
        return watched
    worst = max(compared, key=lambda each: each.after_ns / each.bound_ns)
    if worst.after_ns <= worst.bound_ns:
        return replace(watched, worse=0)
    if watched.worse + 1 < params.windows:
        return replace(watched, worse=watched.worse + 1)
    last = watched.verdict
    again = last is not None and now_ns - last.at_ns <= params.forget_ns
    suspensions = watched.suspensions if again else 0
    return replace(
        watched,
        before={},
        worse=0,
        suspensions=suspensions + 1,
        suspended_until_ns=now_ns + suspend_ns(suspensions, params),
        verdict=worst,
        rollbacks=watched.rollbacks + 1,
    )


def bound_ns(before: LatencySample, params: RollbackParams) -> float:
    """Return the highest p99 that is no worse than before."""
    return max(before.p99_ns * params.worse_ratio, before.p99_ns + params.worse_ns_min)


def suspend_ns(suspensions: int, params: RollbackParams) -> int:
    """Return how long a setting is suspended after this many suspensions in a row."""
    return doubled(params.suspend_ns, suspensions, params.suspend_ns_max)


def _similar_load(before: LatencySample, after: LatencySample, params: RollbackParams) -> bool:
    most = params.load_ratio_max
    pairs = ((before.iops, after.iops), (before.bytes_per_s, after.bytes_per_s))
    return all(one <= most * other and other <= most * one for one, other in pairs)


def _decay_add(
    old: LatencySample | None, new: LatencySample, params: RollbackParams
) -> LatencySample:
    if old is None:
        return new
    kept = old.ios * math.pow(0.5, (new.at_ns - old.at_ns) / params.half_life_ns)
    total = kept + new.ios

    def mean(before: float, now: float) -> float:
        return (kept * before + new.ios * now) / total

    return LatencySample(
        mean(old.p99_ns, new.p99_ns),
        mean(old.iops, new.iops),
        mean(old.bytes_per_s, new.bytes_per_s),
        total,
        new.at_ns,
    )
