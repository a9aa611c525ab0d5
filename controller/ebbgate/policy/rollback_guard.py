# SPDX-License-Identifier: GPL-2.0-only
"""The no-regret guard: an action after which users wait longer is taken back and held off. Pure.

What users feel is remembered, faded, per direction, from the moment a setting was last changed. At
its next change that memory is *before*. Where the p99 is beyond the bound in several windows in a
row soon after, under a load like the one before, the setting goes back to what it was, for a time
that doubles each time. Two settings are watched: `streams` (the cutoff, or split requests) and
`gate` (destage beside the load; in a gap there is nobody to feel it).

    worse     p99 > worse_ratio x before, and by more than worse_ns_min
    like      requests and bytes per second within load_ratio_max of before, either way

Whatever is not known, too few requests and another load among it, counts neither for nor against.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ebbgate.model.frame import Frame, PathLatency
from ebbgate.model.records import Direction
from ebbgate.units import NS_PER_MS, NS_PER_S


class WatchedSetting(StrEnum):
    """What the guard watches and may take back."""

    GATE = "gate"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class RollbackParams:
    """What a policy may set.

    `worse_ratio`, `worse_ns_min`: the bound; less than a disk's seek is not felt. `requests_min`:
    in a window, `before_requests_min`: in the memory, fewer say nothing of a p99.
    `load_ratio_max`: a load that differs more is another one. `windows`: so many in a row must be
    worse. `settle_ns`: so long after a change windows still hold what was before it. `watch_ns`: a
    change is judged for so long; later the load has changed, too. `half_life_ns`: of the memory;
    `before_age_ns_max`: an older one is none. `share_min`: a path with a smaller share of the
    requests (0..1) does not make their p99. `hold_ns`: the first holding off, doubled each time up
    to `hold_ns_max`; after `forget_ns` without any it starts over.
    """

    worse_ratio: float = 2.0
    worse_ns_min: int = 10 * NS_PER_MS
    requests_min: int = 30
    before_requests_min: int = 100
    load_ratio_max: float = 2.0
    windows: int = 3
    settle_ns: int = 3 * NS_PER_S // 2
    watch_ns: int = 60 * NS_PER_S
    half_life_ns: int = 20 * NS_PER_S
    before_age_ns_max: int = 30 * NS_PER_S
    share_min: float = 0.02
    hold_ns: int = 60 * NS_PER_S
    hold_ns_max: int = 3600 * NS_PER_S
    forget_ns: int = 4 * 3600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class LatencySample:
    """What users felt in one direction. `ios`: how many requests it rests on, faded."""

    p99_ns: float
    iops: float
    bytes_per_s: float
    ios: float
    at_ns: int


LatencySamples = Mapping[Direction, LatencySample]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a setting was taken back."""

    setting: WatchedSetting
    direction: Direction
    before_ns: float
    after_ns: float
    bound_ns: float
    at_ns: int


@dataclass(frozen=True, slots=True)
class Watched:
    """One setting. `stand`: what is in force (None: at rest) since `since_ns`; `felt`: since then;
    `before`: before that, empty where nothing is judged; `worse`: windows in a row; `trips`: how
    often it was ever taken back.
    """

    stand: Hashable = None
    since_ns: int = 0
    felt: LatencySamples = field(default_factory=dict)
    before: LatencySamples = field(default_factory=dict)
    worse: int = 0
    held_until_ns: int = 0
    holds: int = 0
    verdict: Verdict | None = None
    trips: int = 0

    def held(self, now_ns: int) -> bool:
        """Is the setting held off?"""
        return now_ns < self.held_until_ns


@dataclass(frozen=True, slots=True)
class RollbackState:
    """All settings; `sampled_ns`: the end of the last window that was looked at."""

    watched: Mapping[WatchedSetting, Watched] = field(default_factory=dict)
    sampled_ns: int = 0

    def of(self, setting: WatchedSetting) -> Watched:
        """One setting."""
        return self.watched.get(setting, Watched())

    def trips(self) -> Mapping[str, int]:
        """How often each setting was taken back."""
        return {str(setting): self.of(setting).trips for setting in WatchedSetting}


def on_frame(
    state: RollbackState,
    frame: Frame,
    stands: Mapping[WatchedSetting, Hashable],
    params: RollbackParams,
) -> RollbackState:
    """A tick. `stands`: what the strategies want of each setting, None where it rests."""
    due = frame.window_ns > 0 and frame.at_ns - state.sampled_ns >= frame.window_ns
    watched = {}
    for setting in WatchedSetting:
        seen = latency_samples(frame, setting, params) if due else {}
        before = state.of(setting)
        watched[setting] = _step(before, setting, stands.get(setting), frame.at_ns, seen, params)
    return RollbackState(watched, frame.at_ns if due else state.sampled_ns)


def verdict(state: RollbackState, setting: WatchedSetting, now_ns: int) -> Verdict | None:
    """Why the setting is held off now; None while it is not."""
    watched = state.of(setting)
    return watched.verdict if watched.held(now_ns) else None


def latency_samples(
    frame: Frame, setting: WatchedSetting, params: RollbackParams
) -> LatencySamples:
    """What users felt over the frame's window, where there were requests enough.

    For `streams` without what was sent past the cache: that it goes at the disk's speed is meant.
    """
    found = {}
    for direction in Direction:
        paths = [
            latency
            for (way, path), latency in frame.paths.items()
            if way is direction and not (setting is WatchedSetting.STREAMS and path == "bypass")
        ]
        felt = _felt(paths, frame, params)
        if felt is not None:
            found[direction] = felt
    return found


def _felt(paths: list[PathLatency], frame: Frame, params: RollbackParams) -> LatencySample | None:
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
    wanted: Hashable,
    now_ns: int,
    seen: LatencySamples,
    params: RollbackParams,
) -> Watched:
    stand = None if old.held(now_ns) else wanted
    new = old
    if stand != old.stand:
        before = _worth(old.felt, now_ns, params) if stand is not None else {}
        new = replace(old, stand=stand, since_ns=now_ns, felt={}, before=before, worse=0)
    if not seen or now_ns - new.since_ns < params.settle_ns:
        return new
    if new.before:
        new = _judge(new, setting, now_ns, seen, params)
    felt = {way: _fade(new.felt.get(way), part, params) for way, part in seen.items()}
    return replace(new, felt={**new.felt, **felt})


def _worth(felt: LatencySamples, now_ns: int, params: RollbackParams) -> LatencySamples:
    """What of the memory is fresh and large enough to compare with."""
    return {
        way: part
        for way, part in felt.items()
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
        if way in seen and _alike(then, seen[way], params)
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
    holds = watched.holds if again else 0
    return replace(
        watched,
        before={},
        worse=0,
        holds=holds + 1,
        held_until_ns=now_ns + hold_ns(holds, params),
        verdict=worst,
        trips=watched.trips + 1,
    )


def bound_ns(before: LatencySample, params: RollbackParams) -> float:
    """Up to here a p99 is no worse than before."""
    return max(before.p99_ns * params.worse_ratio, before.p99_ns + params.worse_ns_min)


def hold_ns(holds: int, params: RollbackParams) -> int:
    """How long a setting is held off after so many times before."""
    return min(params.hold_ns_max, params.hold_ns << min(holds, 32))


def _alike(before: LatencySample, after: LatencySample, params: RollbackParams) -> bool:
    most = params.load_ratio_max
    pairs = ((before.iops, after.iops), (before.bytes_per_s, after.bytes_per_s))
    return all(one <= most * other and other <= most * one for one, other in pairs)


def _fade(old: LatencySample | None, new: LatencySample, params: RollbackParams) -> LatencySample:
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
