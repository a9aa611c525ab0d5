# SPDX-License-Identifier: GPL-2.0-only
"""The cost of the probe comes from the kernel; the switch is restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbgate.doctor import cost


class FakeProc:
    """/proc with a running probe."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys/kernel").mkdir(parents=True)
        self.switch = root / "sys/kernel/bpf_stats_enabled"
        self.switch.write_text("0\n")

    def process(self, pid: int, comm: str = cost.PROBE_COMM) -> None:
        (self.root / str(pid) / "fdinfo").mkdir(parents=True)
        (self.root / str(pid) / "comm").write_text(f"{comm}\n")

    def descriptor(self, pid: int, number: int, **fields: object) -> None:
        text = "pos:\t0\n" + "".join(f"{name}:\t{value}\n" for name, value in fields.items())
        (self.root / str(pid) / "fdinfo" / str(number)).write_text(text)

    def program(self, pid: int, number: int, *, prog: int, runs: int, ns: int) -> None:
        self.descriptor(pid, number, prog_id=prog, run_time_ns=ns, run_cnt=runs)


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """These programs do not exist, so the kernel has no name for them."""
    monkeypatch.setattr(cost, "program_name", lambda number: f"program_{number}")


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    fake = FakeProc(tmp_path)
    fake.process(1, "systemd")
    fake.process(42)
    return fake


def test_the_mean_is_over_all_programs_each_counted_once(proc: FakeProc) -> None:
    proc.program(42, 5, prog=7, runs=10, ns=1000)
    proc.program(42, 6, prog=7, runs=10, ns=1000)
    proc.program(42, 7, prog=8, runs=30, ns=2000)
    found = cost.read(proc.root)
    assert [(each.id, each.name) for each in found.programs] == [(7, "program_7"), (8, "program_8")]
    assert (found.pid, found.runs, found.ns_per_run) == (42, 40, 75.0)


def test_other_descriptors_do_not_count(proc: FakeProc) -> None:
    proc.descriptor(42, 3, link_type="tracing", link_id=3, prog_id=7, prog_tag="ab")
    proc.descriptor(42, 4)
    proc.program(42, 5, prog=7, runs=2, ns=100)
    assert cost.read(proc.root).runs == 2


@pytest.mark.parametrize(
    ("switch", "why"),
    [("0", "not measured: run ebbgate doctor --measure 5"), ("1", "no event yet")],
)
def test_without_counts_the_reason_is_given(proc: FakeProc, switch: str, why: str) -> None:
    proc.switch.write_text(f"{switch}\n")
    proc.program(42, 5, prog=7, runs=0, ns=0)
    found = cost.read(proc.root)
    assert (found.why, found.ns_per_run) == (why, None)


def test_no_probe_and_no_access_have_different_reasons(tmp_path: Path) -> None:
    fake = FakeProc(tmp_path)
    assert cost.read(tmp_path).why == "no probe is running"
    fake.process(42)
    assert cost.read(tmp_path).why == "only root can see the probe's programs: run this as root"


def test_measuring_takes_the_difference_and_restores_the_switch(proc: FakeProc) -> None:
    proc.program(42, 5, prog=7, runs=100, ns=90_000)
    switched: list[str] = []

    def sleep(seconds: float) -> None:
        switched.append(proc.switch.read_text().strip())
        proc.program(42, 5, prog=7, runs=300, ns=100_000)

    found = cost.measure(proc.root, 2.0, sleep)
    assert switched == ["1"]
    assert (found.runs, found.ns_per_run, found.window_ns) == (200, 50.0, 2_000_000_000)
    assert proc.switch.read_text().strip() == "0"


def test_a_switch_that_was_on_stays_on(proc: FakeProc) -> None:
    proc.switch.write_text("1\n")
    proc.program(42, 5, prog=7, runs=0, ns=0)
    assert cost.measure(proc.root, 0.1, lambda _: None).why == "no request arrived meanwhile"
    assert proc.switch.read_text().strip() == "1"


def test_the_switch_is_restored_when_the_person_interrupts(proc: FakeProc) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cost.measure(proc.root, 1.0, sleep)
    assert proc.switch.read_text().strip() == "0"


def test_a_probe_that_restarts_meanwhile_is_measured_from_its_start(proc: FakeProc) -> None:
    proc.program(42, 5, prog=7, runs=100, ns=90_000)

    def sleep(_: float) -> None:
        (proc.root / "42/comm").write_text("gone\n")
        proc.process(43)
        proc.program(43, 5, prog=9, runs=10, ns=700)

    found = cost.measure(proc.root, 1.0, sleep)
    assert (found.pid, found.ns_per_run) == (43, 70.0)
