# SPDX-License-Identifier: GPL-2.0-only
"""store-bound: a month of four busy volumes, written through the real store at simulated time.

No guest. People work for ten hours a day; in that time each volume has a gap every 30 s, which
costs two decisions, four knob writes and two edges. The last day is sampled every second, as the
daemon does; the days before every 20 s (variant `every-second`: these, too), since of them
only minutes are kept anyway.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import median

from ebbgate.model.decision import Action, Decision, Outcome, OutcomeKind
from ebbgate.model.frame import Frame, PathLatency, Rates, Regime
from ebbgate.model.records import Direction, Edge, EdgeKind
from ebbgate.policy.engine import Policy, State, step
from ebbgate.signals.histogram import latency_bucket_us
from ebbgate.store.connection import open_reader
from ebbgate.store.db import Store
from ebbgate.store.limits import DEFAULT_LIMITS
from ebbgate.store.maintenance import Maintenance
from ebbgate.store.queries import History
from ebbgate.store.rollup import SECOND_NS
from ebbgate.store.schema import HISTORY
from ebbgate.units import DAY_NS, GIB, HOUR_NS, MIB, MINUTE_NS, NS_PER_MS
from tests.bench.context import Context, Scenario
from tests.bench.report import Report
from tests.builders import busy_frame, frame, idle_frame

DAYS = 30
VOLUMES = ("bcache0", "bcache1", "vg-data", "vg-home")
BEGIN_NS = 1_800_000_000_000_000_000
WORK_HOURS = range(14, 24)
"""To the very end: an hour of idle volumes would be read in no time."""
GAP_S = 30
SPARSE_S = 20
READS = 20


@dataclass
class Month:
    """The file as it is being written."""

    path: Path
    rng: Random
    every_second: bool
    store: Store = field(init=False)
    maintenance: Maintenance = field(default_factory=lambda: Maintenance(DEFAULT_LIMITS))
    size_bytes_max: int = 0
    step_ns_max: int = 0
    written: int = 0

    def __post_init__(self) -> None:
        self.store = Store.open(self.path)

    def write(self, context: Context) -> None:
        """All days, a minute at a time."""
        for minute in range(DAYS * 24 * 60):
            at_ns = BEGIN_NS + minute * MINUTE_NS
            self._minute(at_ns, minute)
            self._maintain(at_ns + MINUTE_NS, (minute + 1) * MINUTE_NS)
            if minute % 60 == 0:
                self.size_bytes_max = max(self.size_bytes_max, self.size_bytes())
            if minute % (5 * 24 * 60) == 0:
                context.say(f"day {minute // (24 * 60)}: {self.size_bytes() / MIB:.0f} MiB")

    def size_bytes(self) -> int:
        """The file and its log."""
        return sum(size_bytes(each) for each in self.path.parent.glob(f"{self.path.name}*"))

    def _minute(self, at_ns: int, minute: int) -> None:
        last_day = minute >= (DAYS - 1) * 24 * 60
        step_s = 1 if last_day or self.every_second else SPARSE_S
        works = minute // 60 % 24 in WORK_HOURS
        with self.store.batch():
            for second in range(0, 60, step_s):
                now_ns = at_ns + second * SECOND_NS
                frames = [self._frame(name, now_ns, works) for name in VOLUMES]
                self.store.add_samples([(each, now_ns) for each in frames], "enforce")
                self.written += len(frames)
            for second in range(0, 60, GAP_S) if works else ():
                for name in VOLUMES:
                    self._gap(name, at_ns + second * SECOND_NS)

    def _frame(self, name: str, at_ns: int, works: bool) -> Frame:
        iops = self.rng.randrange(50, 400) if works else 0
        dirty = self.rng.randrange(1, 400) * MIB if works else 0
        paths = {
            (op, path): PathLatency(
                iops // share,
                iops * 4096,
                us * 1000,
                us * self.rng.randrange(2000, 5000),
                _spread(iops // share, us),
            )
            for op, path, share, us in (
                (Direction.READ, "hit", 2, 90),
                (Direction.READ, "miss", 9, 6000),
                (Direction.WRITE, "writeback", 3, 120),
                (Direction.WRITE, "bypass", 40, 7000),
            )
            if works
        }
        return frame(
            name,
            at_ns=at_ns,
            regime=Regime.BURST if works else Regime.GAP,
            idle=not works,
            foreground={op: Rates(iops / 2, iops * 2048.0) for op in Direction},
            paths=paths,
            bypass_bytes={"sequential": iops * 4096, "congested": 0},
            destage_bytes_per_s=self.rng.random() * 20 * MIB if works else 0.0,
            dirty_in_bytes_per_s=self.rng.random() * 5 * MIB if works else 0.0,
            dirty_bytes=dirty,
            cache_bytes=64 * GIB,
            backing_depth_ios=self.rng.randrange(8),
            time_to_full_s=self.rng.random() * 600 if works else None,
            time_to_clean_s=self.rng.random() * 60,
        )

    def _gap(self, name: str, at_ns: int) -> None:
        for kind, decision in ((EdgeKind.IDLE, DRAIN), (EdgeKind.BUSY, HOLD)):
            self.store.add_edge(Edge(name, at_ns, kind, 410 * NS_PER_MS), 900_000, at_ns)
            number = self.store.add_decision(replace(decision, volume=name), at_ns)
            writes = [
                Outcome(Action(name, knob, "40", "0", "idle_destage", WHY), OutcomeKind.CHANGED, 1)
                for knob in ("writeback_rate", "writeback_percent")
            ]
            self.store.add_outcomes(writes, number, at_ns, 2_000_000)

    def _maintain(self, wall_ns: int, mono_ns: int) -> None:
        going_on = True
        while going_on:
            began_ns = time.thread_time_ns()
            going_on = self.store.maintain(self.maintenance, wall_ns, mono_ns)
            self.step_ns_max = max(self.step_ns_max, time.thread_time_ns() - began_ns)


WHY = "idle for 410 ms (needs 300)"


def size_bytes(file: Path) -> int:
    """0 for a log that was checkpointed and removed since it was listed."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _spread(ios: int, us: int) -> tuple[int, ...]:
    """A latency histogram: half of the requests within a quarter octave, the rest in a tail."""
    first = next(bucket for bucket in range(108) if latency_bucket_us(bucket)[1] > us)
    found = [0] * first
    while ios:
        found.append(-(-ios // 2))
        ios //= 2
    return tuple(found)


def _decision(seen: Frame) -> Decision:
    """A real one: its explanation is most of what is kept."""
    return step(State(), seen, Policy(), seen.at_ns)[1].explained()


DRAIN, HOLD = _decision(idle_frame(2000)), _decision(busy_frame(1000))


def read_ms(path: Path, volumes: tuple[str, ...]) -> tuple[float, float]:
    """The time to read the last hour's samples of these volumes, the file being opened anew, and
    the CPU time of it: the first is longer on a machine that has other things to do.
    """
    until_ns = BEGIN_NS + DAYS * DAY_NS
    began_ns, began_cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
    history = History.open(path)
    found = [history.samples(name, until_ns - HOUR_NS, until_ns, SECOND_NS) for name in volumes]
    spent_ns = time.perf_counter_ns() - began_ns
    cpu_ns = time.thread_time_ns() - began_cpu_ns
    history.close()
    assert [len(rows) for rows in found] == [3600] * len(volumes), "the last hour is not whole"
    return spent_ns / NS_PER_MS, cpu_ns / NS_PER_MS


def measure(context: Context, seed: int) -> dict[str, float]:
    """One month."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        month = Month(path, Random(seed), every_second=context.variant == "every-second")
        began = time.perf_counter()
        month.write(context)
        spent_s = time.perf_counter() - began
        month.store.close()
        one = [read_ms(path, VOLUMES[number % 4 :][:1]) for number in range(READS)]
        whole = [read_ms(path, VOLUMES) for _ in range(READS // 4)]
        return {
            "size_mib_max": month.size_bytes_max / MIB,
            "size_mib_end": month.size_bytes() / MIB,
            "last_hour_read_ms": median(wall_ms for wall_ms, _ in one),
            "last_hour_read_cpu_ms": median(cpu_ms for _, cpu_ms in one),
            "last_hour_read_ms_worst": max(wall_ms for wall_ms, _ in one),
            "last_hour_of_all_read_ms": median(wall_ms for wall_ms, _ in whole),
            "maintenance_step_cpu_ms_max": month.step_ns_max / NS_PER_MS,
            "us_per_sample": spent_s * 1e6 / month.written,
            **kept_days(path),
        }


OLDEST = {
    "seconds": f"SELECT min(at_unix_ns) FROM samples WHERE span_ns = {SECOND_NS}",
    "minutes": f"SELECT min(at_unix_ns) FROM samples WHERE span_ns = {MINUTE_NS}",
    "hours": f"SELECT min(at_unix_ns) FROM samples WHERE span_ns = {HOUR_NS}",
    "decisions": "SELECT min(at_unix_ns) FROM decisions",
    "actions": "SELECT min(at_unix_ns) FROM actions",
    "edges": "SELECT min(at_unix_ns) FROM edges",
}


def kept_days(path: Path) -> dict[str, float]:
    """How far back what is kept reaches."""
    until_ns = BEGIN_NS + DAYS * DAY_NS
    with closing(open_reader(path, HISTORY)) as history:
        found = {what: history.execute(query).fetchone()[0] for what, query in OLDEST.items()}
    oldest = {what: at_ns for what, at_ns in found.items() if at_ns is not None}
    return {f"days_of_{what}": (until_ns - at_ns) / DAY_NS for what, at_ns in oldest.items()}


def run(context: Context) -> Report:
    """The size at its largest, and the median read of one volume's last hour."""
    runs = [measure(context, context.seed + number) for number in range(context.repetitions)]
    ratios = {
        "size_mib_max": max(each["size_mib_max"] for each in runs),
        "last_hour_read_ms": median(each["last_hour_read_ms"] for each in runs),
        "days_of_minutes": min(each["days_of_minutes"] for each in runs),
    }
    goals = {"size_mib_max": "<= 256", "last_hour_read_ms": "<= 50", "days_of_minutes": ">= 29.9"}
    return Report("store-bound", {"ebbgate": runs}, ratios, goals, ("without a guest",))


SCENARIO = Scenario(
    "store-bound",
    "a month of 4 volumes fits 256 MiB, and the last hour is read in 50 ms",
    5,
    run,
    ("every-second",),
)
