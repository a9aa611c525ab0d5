# SPDX-License-Identifier: GPL-2.0-only
"""The demo's output: a live panel on a terminal, plain lines elsewhere.

I/O: stdout. Called by the demo's thread and by its watcher.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_BAR_CELLS = 44
_FULL_MIB = 420.0
"""A full bar: what the demo makes dirty, and some air."""
_DECISIONS_SHOWN = 12
_PLAIN_PERIOD_S = 2.0
_STEPS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Moment:
    """The volume at one time. The strings are empty where no daemon runs."""

    dirty_mib: float
    regime: str = ""
    gate: str = ""
    now: str = ""


@dataclass(slots=True)
class Screen:
    """Everything goes through here, so that lines never cut the panel."""

    console: Console = field(default_factory=lambda: Console(highlight=False))
    _started: float = field(default_factory=time.monotonic)
    _arm: str = ""
    _phase: str = "starting"
    _address: str = ""
    _moment: Moment = Moment(0.0)
    _levels: deque[float] = field(default_factory=lambda: deque(maxlen=_BAR_CELLS))
    _decisions: deque[str] = field(default_factory=lambda: deque(maxlen=_DECISIONS_SHOWN))
    _live: Live | None = None
    _plain_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def arm(self, name: str) -> None:
        """A new run on a fresh volume."""
        with self._lock:
            self._arm = name
            self._moment = Moment(0.0)
            self._levels.clear()
            self._decisions.clear()

    def phase(self, text: str) -> None:
        """What the workload does from now on."""
        with self._lock:
            self._phase = text
            self._say(f"-- {text}", "bold")

    def address(self, url: str) -> None:
        """Where a browser sees all of it."""
        with self._lock:
            self._address = url
            self._say(f"-- in a browser, half a minute from now: {url}", "bold green")

    def moment(self, moment: Moment) -> None:
        """A sample of the volume."""
        with self._lock:
            self._moment = replace(moment)
            self._levels.append(moment.dirty_mib)
            self._draw()
            if self._live is None and time.monotonic() - self._plain_at >= _PLAIN_PERIOD_S:
                self._plain_at = time.monotonic()
                state = f"  {moment.regime:7} gate {moment.gate}" if moment.regime else ""
                self._say(f"{bar(moment.dirty_mib, 24)} {moment.dirty_mib:6.1f} MiB dirty{state}")

    def decision(self, text: str) -> None:
        """A line of the daemon's log."""
        with self._lock:
            self._decisions.append(f"{self._clock()} {text}")
            self._say(f"   {text}", "cyan")

    def note(self, text: str) -> None:
        """A line that stays."""
        with self._lock:
            self.console.print(Text(text), soft_wrap=True)

    def _say(self, text: str, style: str = "") -> None:
        if self._live is not None:
            self._draw()
            return
        arm = f" {self._arm:8}" if self._arm else ""
        self.console.print(Text(f"[{self._clock()}]{arm} ").append(text, style), soft_wrap=True)

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(self._panel())

    def _panel(self) -> Panel:
        seen = self._moment
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim")
        facts.add_column()
        facts.add_row("browser", Text(self._address or "-", style="green"))
        facts.add_row("workload", Text(self._phase, style="bold"))
        level = Text(bar(seen.dirty_mib, _BAR_CELLS), style="cyan")
        facts.add_row("dirty", level.append(f" {seen.dirty_mib:.0f} MiB", style="bold"))
        facts.add_row("lately", Text(history(self._levels), style="cyan"))
        facts.add_row("regime", seen.regime or "-")
        facts.add_row("gate", seen.gate or "the kernel's own settings")
        facts.add_row("now", seen.now or "-")
        lines = [Text(line, overflow="ellipsis", no_wrap=True) for line in self._decisions]
        shown = Group(facts, *([Text("\ndecisions", style="dim")] if lines else []), *lines)
        title = f"ebbgate demo: {self._arm or 'boot'}  {self._clock()}"
        return Panel(shown, title=title, title_align="left")

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        return f"{minutes:02d}:{seconds:02d}"


def bar(dirty_mib: float, cells: int) -> str:
    """`██████······`, full at what the demo makes dirty."""
    filled = round(min(1.0, dirty_mib / _FULL_MIB) * cells)
    # A little is not nothing.
    filled = max(filled, int(dirty_mib > 0))
    return "█" * filled + "·" * (cells - filled)


def history(levels: Sequence[float]) -> str:
    """The last samples as a row of small columns."""
    top = len(_STEPS) - 1
    return "".join(_STEPS[min(top, -int(-level / _FULL_MIB * top // 1))] for level in levels)


def print_table(console: Console, rows: Sequence[tuple[str, str, str]]) -> None:
    """The figures of both arms, side by side."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("")
    for name in ("stock", "ebbgate"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)
