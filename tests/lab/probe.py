# SPDX-License-Identifier: GPL-2.0-only
"""The real probe in the guest, and its records as they come.

I/O: starts build/ebbgate-probe through a Session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.lab.bcache_stack import BcacheStack
from tests.lab.dm_stack import DmCacheStack, DmStack
from tests.lab.errors import CommandFailed, NoLab
from tests.lab.guest import CHECKOUT
from tests.lab.session import Session
from tests.lab.stack import Stack
from tests.lab.wait import wait_until
from tests.probe_records import Record, of_type, parse

PROBE = CHECKOUT / "build" / "ebbgate-probe"
# Loading the programs takes a second or two on an emulated CPU, compiling them half a minute.
_DEADLINE_S = 40

T = TypeVar("T")


def tracked_as(stack: Stack) -> str:
    """The name under which a stack is tracked unless another is given."""
    return stack.name if isinstance(stack, DmStack) else stack.volume


class GuestProbe:
    """A running probe; leaving it ends it, and expects that it ends well."""

    def __init__(
        self, session: Session, *arguments: str, argv: Sequence[str | Path] = (PROBE,)
    ) -> None:
        if not PROBE.exists():
            raise NoLab("build/ebbgate-probe is not built: make probe")
        self._session = session
        self._text = b""
        self._whole: list[Record] = []
        self.process = session.spawn([*argv, *arguments], stdin=True)

    def __enter__(self) -> Self:
        self.wait_for("hello")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        code = self.end()
        if code != 0 and error is None:
            raise CommandFailed(f"the probe ended with {code}: {self.process.stderr()[-2000:]}")

    def end(self) -> int:
        """Close its stdin and wait for its end; its exit code."""
        if self.process.poll() is None:
            self.process.close_stdin()
        return self.process.wait(_DEADLINE_S).rc

    def send(self, command: str) -> None:
        """One command line."""
        self.process.write(command + "\n")

    def records(self) -> list[Record]:
        """All records so far."""
        new = self._session.read_bytes(self.process.stdout_path, offset=len(self._text))
        start = self._text.rfind(b"\n") + 1
        self._text += new
        self._whole += parse(self._text[start:].decode())
        return self._whole

    def wait(self, find: Callable[[list[Record]], T | None], what: str) -> T:
        """Wait until the records hold something."""
        try:
            return wait_until(lambda: find(self.records()), _DEADLINE_S, what)
        except BaseException as failure:
            failure.add_note(f"the probe's stderr: {self.process.stderr()[-2000:]}")
            raise

    def wait_for(self, kind: str, **fields: object) -> Record:
        """The first record of a type with these fields, from now or before."""
        return self.wait(
            lambda records: next(iter(of_type(records, kind, **fields)), None), f"{kind} {fields}"
        )

    def track(self, stack: BcacheStack, name: str = "") -> None:
        """Track a stack's volume, under its kernel name if none is given."""
        name = name or tracked_as(stack)
        volume, cache, backing = (stack.dev_t(which) for which in ("volume", "ssd", "hdd"))
        self.send(f"track {name} kind=bcache volume={volume} cache={cache} backing={backing}")
        self.wait_for("track", vol=name)

    def track_dm(self, stack: DmStack, name: str = "") -> None:
        """Track a stack of device-mapper, under its dm name if none is given."""
        name = name or tracked_as(stack)
        parts = {"volume": "volume", "cache": "cache", "backing": "origin"}
        devices = " ".join(f"{word}={stack.dev_t(part)}" for word, part in parts.items())
        mode = f" mode={stack.status().mode}" if isinstance(stack, DmCacheStack) else ""
        self.send(f"track {name} kind=dm-{stack.target} {devices}{mode}")
        self.wait_for("track", vol=name)

    def tick(self, name: str) -> Record:
        """A tick whose counting began after this call."""
        seen = len(of_type(self.records(), "tick", vol=name))

        def later(records: list[Record]) -> Record | None:
            ticks = of_type(records, "tick", vol=name)
            return ticks[-1] if len(ticks) >= seen + 2 else None

        return self.wait(later, f"tick of {name}")

    def edges(self, name: str) -> list[Record]:
        """The edges since the volume was last tracked."""
        records = self.records()
        tracked = of_type(records, "track", vol=name)[-1:]
        return of_type(
            records[records.index(tracked[0]) :] if tracked else records, "edge", vol=name
        )
