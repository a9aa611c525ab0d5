# SPDX-License-Identifier: GPL-2.0-only
"""A life of the actuators in which one system call fails, and what must hold afterwards.

I/O: files below one folder, children of this process.
"""

from __future__ import annotations

import errno
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ebbgate.model.decision import Outcome, OutcomeKind
from ebbgate.store import journal_writer
from tests.knob_life import knobs
from tests.stop_harness import Machine, Snapshot, knob_of
from tests.syscalls import Call

ERRNOS: Final = (errno.EACCES, errno.ENOMEM, errno.EINTR, errno.EIO, errno.ENOSPC)
_PATIENCE_S: Final = 0.2
"""How long a life whose disk hangs waits for the journal, instead of ten seconds."""
_HANG_S: Final = 8.0
"""Longer than a life in which every step waits for the journal in vain."""
_SLOWER: Final = 20
"""A machine under load may be so many times slower than it was during the undisturbed run."""
_BAD: Final = (OutcomeKind.FAILED, OutcomeKind.REFUSED)


@dataclass(frozen=True, slots=True)
class LifeReport:
    """Results of a life. `outcomes`: knob, value, kind and error of each; `errors`: logged ones."""

    outcomes: tuple[tuple[str, ...], ...]
    errors: tuple[str, ...]

    @property
    def bad(self) -> list[tuple[str, ...]]:
        """Outcomes that report a failure."""
        return [outcome for outcome in self.outcomes if outcome[2] in _BAD]

    @property
    def named(self) -> bool:
        """Whether anything reports a failure."""
        return bool(self.bad or self.errors)


@dataclass(frozen=True, slots=True)
class FaultResult:
    """A life in which one call failed. `call`: which, None where it ended before; `broken`: what
    does not hold, in sentences.
    """

    call: Call | None
    number: int
    broken: Sequence[str]


def hang_s(took_s: float) -> float:
    """Return after which time without a call a life hangs. `took_s`: of an undisturbed one."""
    return max(_HANG_S, _SLOWER * took_s)


class ErrnoHarness:
    """Runs lives on one machine; `expected`: the results of an undisturbed one."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._report = machine.told
        begun_s = time.monotonic()
        self.calls = machine.calls(self._work)
        self._hang_s = hang_s(time.monotonic() - begun_s)
        self.expected = self._read_report()

    def fails(self, place: int, number: int) -> FaultResult:
        """Call `place` of a life returns errno `number`; then the life goes on to its end, and
        `restore` runs without a fault.
        """
        call, code = self._run(place, number, self._work)
        if self._ended_at_start(call, code):
            return FaultResult(call, number, [])
        broken = [f"it ended with {code}"] if code else self._said_wrong(call, number)
        lost = self.machine.wrong().keys() - set(self.machine.home.left())
        broken += [f"the original of {knob} is lost" for knob in lost]
        return FaultResult(call, number, [*broken, *self._not_put_back()])

    def hangs(self, place: int) -> FaultResult:
        """Call `place`, if it is one of the journal's thread, never returns; the life goes on to
        its end all the same, and `restore` runs without a fault.
        """
        self.machine.reset()
        self._report.unlink(missing_ok=True)
        broken = []
        with self.machine.child(self._impatient) as child:
            call = None
            for _ in range(place + 1):
                call = child.next_call()
            if call is None or call.thread == child.pid:
                # Not of the journal's thread. A life whose own thread hangs is like one that was
                # killed (stop_harness), and the file of last values is in memory.
                return FaultResult(None, 0, [])
            child.hang()
            try:
                while child.next_call(self._hang_s) is not None:
                    pass
            except TimeoutError:
                broken.append("it does not end")
        if not broken and not child.exit_code and not self._read_report().named:
            broken.append("it is not named")
        return FaultResult(call, 0, [*broken, *self._not_put_back()])

    def restore_fails(self, held: Snapshot, place: int, number: int) -> FaultResult:
        """Make one call of a `restore` fail, which starts from the files of a killed life."""
        self.machine.load(held)
        call, code = self._run(place, number, self._restore, fresh=False)
        broken = []
        if not self._ended_at_start(call, code):
            broken = [f"it ended with {code}"] if code else self._left_unsaid()
        return FaultResult(call, number, [*broken, *self._not_put_back()])

    def _not_put_back(self) -> list[str]:
        """Return what a `restore` without a fault leaves behind."""
        self.machine.home.put_back()
        found = [f"{knob} is {what}" for knob, what in self.machine.wrong().items()]
        return [*found, *(f"{knob} is still in the journal" for knob in self.machine.home.left())]

    def _run(
        self, place: int, number: int, work: Callable[[], None], *, fresh: bool = True
    ) -> tuple[Call | None, int | None]:
        if fresh:
            self.machine.reset()
        self._report.unlink(missing_ok=True)
        call = None
        with self.machine.child(work) as child:
            for _ in range(place + 1):
                call = child.next_call()
            if call is not None:
                child.fail(number)
            for _ in child.calls():
                pass
        return call, child.exit_code

    @staticmethod
    def _ended_at_start(call: Call | None, code: int | None) -> bool:
        """Return whether it did not start, as without its file of last values."""
        return bool(code) and call is not None and Path(call.path).name == "last-written"

    def _said_wrong(self, call: Call | None, number: int) -> list[str]:
        """Return what is wrong with the report of the failure: it must be reported once."""
        told = self._read_report()
        broken = []
        if len(told.bad) > 1:
            broken.append(f"named more than once: {told.bad}")
        if len(told.errors) > 1:
            broken.append(f"logged more than once: {told.errors}")
        if told.outcomes != self.expected.outcomes and not told.named:
            broken.append("it is not named")
        # Python repeats a call that a signal has interrupted.
        if call is not None and self._is_write(call) and number != errno.EINTR:
            named_knobs = [outcome[0] for outcome in told.bad]
            if named_knobs != [knob_of(call)]:
                broken.append(f"the knob is not named: {told.bad}")
        return broken

    def _is_write(self, call: Call) -> bool:
        """Return whether the call writes a knob, whose failure must name that knob."""
        written = call.name in ("write", "rename") and "/state/" not in call.path
        return written and knob_of(call) in knobs(self.machine.volume)

    def _left_unsaid(self) -> list[str]:
        told = {outcome[0] for outcome in self._read_report().bad}
        wrong = self.machine.wrong().keys()
        return [f"{knob} is not back, and that is not said" for knob in wrong - told]

    def _work(self) -> None:
        self._report_to_file(lambda: self.machine.home.live(self.machine.volume))

    def _impatient(self) -> None:
        journal_writer.__dict__["_TIMEOUT_S"] = _PATIENCE_S
        self._work()

    def _restore(self) -> None:
        self._report_to_file(self.machine.home.put_back)

    def _report_to_file(self, work: Callable[[], Sequence[Outcome]]) -> None:
        """In the child: write the results to a file."""
        errors: list[str] = []
        handler = logging.Handler(logging.ERROR)
        handler.emit = lambda record: errors.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger().addHandler(handler)
        outcomes = [(o.action.knob, o.action.new, o.kind, o.error) for o in work()]
        self._report.write_text(json.dumps([outcomes, errors]))

    def _read_report(self) -> LifeReport:
        outcomes, errors = json.loads(self._report.read_text())
        return LifeReport(tuple(tuple(outcome) for outcome in outcomes), tuple(errors))
