# SPDX-License-Identifier: GPL-2.0-only
"""The hand on the knobs: originals are safe first, the administrator wins, all comes back."""

from __future__ import annotations

import errno
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbgate.actuators.gate_thread import drive
from ebbgate.actuators.hand import Hand, Reason, same_value
from ebbgate.actuators.plan import BASE, GATE_KNOBS, KERNEL_WRITES, write
from ebbgate.model.decision import Gate, GateKind, JournalEntry, Outcome, OutcomeKind
from ebbgate.probes.bcache_knobs import knob_path
from ebbgate.probes.bcache_state import read_knobs
from ebbgate.units import MIB
from tests.builders import volume
from tests.fake_sysfs import WatchedSysfs, fake_bcache

REASON = Reason("idle_destage", "idle 410 ms >= wait 300 ms")
PACED = Gate(GateKind.PACED, 8 * MIB)
CLOSED = Gate(GateKind.CLOSED, 512)
RELEASED = Gate(GateKind.RELEASED)


class Notebook:
    """A journal that a test reads; `broken`: it cannot be written."""

    def __init__(self, sysfs: WatchedSysfs) -> None:
        self.sysfs = sysfs
        self.broken = False
        self.entries: dict[str, JournalEntry] = {}
        self.found: dict[str, str | None] = {}
        self.closed: list[tuple[str, str]] = []

    def put(self, entry: JournalEntry) -> None:
        if self.broken:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.entries[entry.knob] = entry
        self.found[entry.knob] = self.sysfs.read_text(entry.path)

    def close(self, volume: str, knob: str, how: str) -> None:
        assert volume == "bcache0"
        self.closed.append((knob, how))


class Bench:
    """A hand on the ordinary machine of `fake_bcache`."""

    def __init__(self, root: Path) -> None:
        self.fake = fake_bcache(root)
        self.fake.write(f"/sys/fs/bcache/{volume().set_uuid}/internal/trigger_gc", "")
        self.sysfs = WatchedSysfs(root)
        self.notebook = Notebook(self.sysfs)
        self.hand = Hand(self.sysfs, volume(), self.notebook, "this boot", wall_ns=lambda: 5)

    def path(self, knob: str) -> str:
        found = knob_path(volume(), knob)
        assert found is not None
        return str(found)

    def value(self, knob: str) -> str:
        return self.fake.read(self.path(knob))

    def someone_writes(self, knob: str, value: str) -> None:
        self.fake.write(self.path(knob), value)

    def look(self) -> list[str]:
        return self.hand.check_manual(read_knobs(self.sysfs, volume()))

    def drive(self, gate: Gate) -> list[Outcome]:
        return drive(self.hand, gate, REASON)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def kinds(outcomes: list[Outcome]) -> list[OutcomeKind]:
    return [outcome.kind for outcome in outcomes]


# ---- the journal --------------------------------------------------------------------------------
def test_the_original_is_in_the_journal_before_the_first_write(bench: Bench) -> None:
    bench.hand.apply((write("writeback_percent", 40),), REASON)
    entry = bench.notebook.entries["writeback_percent"]
    assert bench.notebook.found["writeback_percent"] == "10"
    assert entry == JournalEntry(
        volume="bcache0",
        knob="writeback_percent",
        path="/sys/block/bcache0/bcache/writeback_percent",
        original="10",
        last_written="40",
        boot_id="this boot",
        at_unix_ns=5,
        by="idle_destage",
        why="idle 410 ms >= wait 300 ms",
    )
    assert bench.value("writeback_percent") == "40"


def test_without_a_journal_nothing_is_written(bench: Bench) -> None:
    bench.notebook.broken = True
    outcomes = bench.drive(PACED)
    assert set(kinds(outcomes)) == {OutcomeKind.REFUSED}
    assert "the journal is not writable" in outcomes[0].error
    assert bench.sysfs.log == []
    assert bench.hand.held == {}


def test_an_original_is_kept_once(bench: Bench) -> None:
    bench.drive(PACED)
    bench.notebook.entries.clear()
    bench.drive(CLOSED)
    assert bench.notebook.entries == {}


def test_a_size_is_journalled_in_the_unit_in_which_it_is_written(bench: Bench) -> None:
    bench.hand.apply((write("sequential_cutoff", 256 * 1024),), REASON)
    assert bench.notebook.entries["sequential_cutoff"].original == "4194304"
    bench.hand.release(["sequential_cutoff"], REASON)
    assert bench.value("sequential_cutoff") == "4194304"


def test_a_trigger_leaves_nothing_to_journal_and_is_written_each_time(bench: Bench) -> None:
    for _ in range(2):
        outcomes = bench.hand.apply((write("trigger_gc", 1, always=True),), REASON)
        assert kinds(outcomes) == [OutcomeKind.CHANGED]
    assert bench.sysfs.log == [("trigger_gc", "1")] * 2
    assert (bench.notebook.entries, bench.hand.held) == ({}, {})


# ---- what is written ----------------------------------------------------------------------------
def test_the_base_is_taken_over_before_the_gate_is_driven(bench: Bench) -> None:
    bench.drive(PACED)
    assert bench.sysfs.log == [
        *BASE.items(),
        ("writeback_rate", "16384"),
        ("writeback_percent", "40"),
    ]


def test_a_value_that_is_there_already_is_not_written(bench: Bench) -> None:
    bench.drive(PACED)
    del bench.sysfs.log[:]
    bench.drive(CLOSED)
    assert bench.sysfs.log == [("writeback_rate", "1")]


def test_what_the_kernel_changes_by_itself_is_written_again(bench: Bench) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_rate", "500.0k")
    bench.drive(PACED)
    assert bench.value("writeback_rate") == str(8 * MIB)


def test_a_failure_ends_the_plan_and_names_the_kernels_reason(bench: Bench) -> None:
    def busy() -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    bench.drive(PACED)
    bench.sysfs.before["writeback_rate"] = busy
    outcomes = bench.drive(Gate(GateKind.PULSED, 16 * MIB, 1000))
    assert kinds(outcomes) == [OutcomeKind.FAILED]
    assert "busy" in outcomes[0].error
    assert bench.hand.held["writeback_rate"].written == "16384"


def test_a_base_knob_that_this_kernel_lacks_is_said_once_and_does_without(bench: Bench) -> None:
    bench.fake.remove(bench.path("writeback_delay"))
    refused = [o for o in bench.drive(PACED) if o.kind is OutcomeKind.REFUSED]
    assert [(o.action.knob, o.error) for o in refused] == [
        ("writeback_delay", "this kernel has no such knob")
    ]
    assert bench.value("writeback_percent") == "40"
    assert bench.value("idle_max_writeback_rate") == "0"
    assert OutcomeKind.REFUSED not in kinds(bench.drive(CLOSED))


def test_without_a_cache_its_knobs_are_refused(bench: Bench) -> None:
    bench.hand.volume = volume(set_uuid="")
    (outcome,) = bench.hand.apply((write("trigger_gc", 1, always=True),), REASON)
    assert (outcome.kind, outcome.error) == (OutcomeKind.REFUSED, "no cache is attached")


def test_an_action_says_what_was_written_why_and_over_what(bench: Bench) -> None:
    bench.hand.apply((write("writeback_percent", 40),), REASON)
    (outcome,) = bench.hand.apply((write("writeback_percent", 0),), REASON)
    action = outcome.action
    assert (action.volume, action.knob) == ("bcache0", "writeback_percent")
    assert (action.old, action.new) == ("40", "0")
    assert (action.strategy, action.reason) == (REASON.strategy, REASON.text)


# ---- the administrator wins ---------------------------------------------------------------------
def test_what_somebody_else_wrote_is_left_alone(bench: Bench) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_percent", "20")
    assert bench.look() == ["writeback_percent"]
    assert bench.notebook.closed == [("writeback_percent", "manual: found 20")]
    (outcome,) = bench.hand.apply((write("writeback_percent", 0),), REASON)
    assert outcome.kind is OutcomeKind.MANUAL
    assert bench.value("writeback_percent") == "20"


def test_a_gate_with_a_manual_knob_is_given_back_whole_and_stays_so(bench: Bench) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_percent", "20")
    bench.look()
    for gate in (CLOSED, PACED, RELEASED):
        bench.drive(gate)
        values = {knob: bench.value(knob) for knob in ORIGINALS if knob not in KERNEL_WRITES}
        assert values == {
            "writeback_percent": "20",
            "writeback_delay": "30",
            "writeback_rate_update_seconds": "5",
            "idle_max_writeback_rate": "1",
        }


def test_a_manual_knob_is_reported_once(bench: Bench) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_delay", "7")
    assert bench.look() == ["writeback_delay"]
    assert bench.look() == []


def test_a_knob_that_a_person_gives_back_has_that_persons_value_as_original(bench: Bench) -> None:
    bench.drive(PACED)
    bench.someone_writes("writeback_percent", "20")
    bench.look()
    bench.hand.forget_manual()
    bench.drive(PACED)
    assert bench.value("writeback_percent") == "40"
    assert bench.notebook.entries["writeback_percent"].original == "20"
    bench.drive(RELEASED)
    assert bench.value("writeback_percent") == "20"


def test_what_the_kernel_writes_itself_is_no_administrator(bench: Bench) -> None:
    bench.drive(PACED)
    for knob in KERNEL_WRITES:
        bench.someone_writes(knob, "500.0k")
    assert bench.look() == []


def test_an_unreadable_knob_is_no_administrator(bench: Bench) -> None:
    bench.drive(PACED)
    bench.fake.remove(bench.path("writeback_delay"))
    assert bench.look() == []


def test_what_the_kernel_rounds_in_print_is_no_administrator(bench: Bench) -> None:
    bench.hand.apply((write("sequential_cutoff", 1_300_000),), REASON)
    bench.someone_writes("sequential_cutoff", "1.2M")
    assert bench.look() == []


@pytest.mark.parametrize(
    ("knob", "written", "seen", "same"),
    [
        ("sequential_cutoff", "4194304", "4194304", True),
        ("sequential_cutoff", "4194303", "4089446", True),
        ("sequential_cutoff", "4194304", "3670016", False),
        ("sequential_cutoff", "4194304", "0", False),
        ("sequential_cutoff", "4194304", "much", False),
        ("writeback_percent", "40", "40", True),
        ("writeback_percent", "40", "39", False),
        ("writeback_delay", "0", "1", False),
        ("writeback_rate", "16384", "16588", True),
        ("writeback_rate", "1", "2", True),
    ],
)
def test_same_value(knob: str, written: str, seen: str, same: bool) -> None:
    assert same_value(knob, written, seen) is same


# ---- everything comes back ----------------------------------------------------------------------
ORIGINALS = {
    "writeback_percent": "10",
    "writeback_delay": "30",
    "writeback_rate_update_seconds": "5",
    "idle_max_writeback_rate": "1",
    "writeback_rate": "8",
}


def test_a_release_puts_every_original_back_and_closes_the_journal(bench: Bench) -> None:
    bench.drive(PACED)
    outcomes = bench.drive(RELEASED)
    assert set(kinds(outcomes)) == {OutcomeKind.CHANGED}
    knobs = read_knobs(bench.sysfs, volume())
    assert {knob: knobs[knob] for knob in ORIGINALS} == ORIGINALS
    assert bench.hand.held == {}
    assert sorted(bench.notebook.closed) == sorted((knob, "restored") for knob in ORIGINALS)


def test_a_release_goes_the_way_back(bench: Bench) -> None:
    bench.drive(PACED)
    del bench.sysfs.log[:]
    bench.drive(RELEASED)
    assert [knob for knob, _ in bench.sysfs.log] == list(reversed(GATE_KNOBS))


def test_what_could_not_be_put_back_is_still_held_and_put_back_later(bench: Bench) -> None:
    def busy() -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    bench.drive(PACED)
    bench.sysfs.before["writeback_delay"] = busy
    outcomes = bench.drive(RELEASED)
    assert kinds(outcomes).count(OutcomeKind.FAILED) == 1
    assert list(bench.hand.held) == ["writeback_delay"]
    assert "writeback_delay" not in dict(bench.notebook.closed)
    del bench.sysfs.before["writeback_delay"]
    bench.drive(RELEASED)
    assert bench.value("writeback_delay") == "30"
    assert bench.hand.held == {}


def test_what_we_do_not_hold_is_not_released(bench: Bench) -> None:
    assert bench.drive(RELEASED) == []
    assert bench.sysfs.log == []


GATES = st.builds(
    Gate,
    st.sampled_from([*GateKind]),
    st.integers(min_value=0, max_value=1 << 40),
    st.just(1000),
)
STEPS = st.lists(
    st.one_of(
        GATES,
        st.integers(min_value=-5, max_value=1 << 40),
        st.sampled_from(["writeback_percent", "writeback_delay", "sequential_cutoff"]),
    ),
    max_size=10,
)


@settings(max_examples=25)
@given(STEPS, st.sampled_from([None, *GATE_KNOBS]))
def test_whatever_was_done_a_stop_restores_all_but_what_somebody_else_wrote(
    steps: list[Gate | int | str], refused: str | None
) -> None:
    """A gate, a cutoff, or somebody else's write, in any order; `refused`: it fails once."""
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        before = dict(read_knobs(bench.sysfs, volume()))
        foreign: dict[str, str] = {}
        if refused is not None:
            bench.sysfs.before[refused] = lambda: fail_once(bench.sysfs, refused)
        for step in steps:
            if isinstance(step, Gate):
                bench.drive(step)
            elif isinstance(step, int):
                bench.hand.apply((write("sequential_cutoff", step),), REASON)
            else:
                bench.someone_writes(step, "77")
                bench.look()
                foreign[step] = "77"
        for _ in range(2):
            bench.hand.release(list(bench.hand.held)[::-1], REASON)
        after = dict(read_knobs(bench.sysfs, volume()))
        assert bench.hand.held == {}
        assert after == {**before, **foreign}


def fail_once(sysfs: WatchedSysfs, knob: str) -> None:
    del sysfs.before[knob]
    raise OSError(errno.EIO, "Input/output error")
