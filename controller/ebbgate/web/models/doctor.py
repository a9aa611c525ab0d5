# SPDX-License-Identifier: GPL-2.0-only
"""Models of advice and of the doctor's report. Pure data."""

from __future__ import annotations

from ebbgate.web.models.base import Model, doc


class Advice(Model):
    """A problem, recommendation or note."""

    id: str = doc("A number that does not change its meaning.", example="EBB-206")
    volume: str = doc("The volume.")
    title: str = doc("The volume's display name.")
    weight: str = doc(
        "fault: data or tuning is at risk; advice: measured here, or harmful whatever the load"
        " is; note: information."
    )
    severity: str = doc("The weight for people: Problem, Recommended or Info.")
    about: str = doc("The volume or device.")
    text: str = doc("What to do and why.")
    evidence: list[str] = doc("What was measured here.")
    effect: str | None = doc("The expected effect; null if unknown.")
    command: str | None = doc("The command that does it; null if there is none.")
    lasts: str | None = doc("What of it survives a reboot; null if there is no command.")
    keep: str | None = doc("The line that makes it permanent, for the file named in `lasts`.")
    can_apply: bool = doc("Whether the daemon can apply it now.")
    why_not: str | None = doc("Why not; null if it can.")
    undo: str | None = doc("The command that undoes it; null if there is none.")


class AppliedKnob(Model):
    """A knob that a recommendation has set."""

    knob: str = doc("The knob by its kernel name.", example="sequential_cutoff")
    value: str = doc("Its value as the kernel writes it.")


class AppliedAdvice(Model):
    """A recommendation that was applied and is in force. A `release` of each of its knobs undoes
    it.
    """

    id: str = doc("Its number.", example="EBB-206")
    volume: str = doc("The volume.")
    title: str = doc("The volume's display name.")
    who: str = doc("Who applied it.")
    at_unix_s: float = doc("When.", "s since 1970")
    knobs: list[AppliedKnob] = doc("What it set that is still in force.")


class NotChecked(Model):
    """What could not be checked, and why."""

    volume: str | None = doc("The volume; null if unknown.")
    title: str | None = doc("The volume's display name.")
    why: str = doc("The reason, and the next step.")


class AdviceList(Model):
    """All current advice, and what was applied."""

    advice: list[Advice] = doc("By volume.")
    applied: list[AppliedAdvice] = doc("In force, newest first.")
    unknown: list[NotChecked] = doc("What could not be checked.")


class Kernel(Model):
    """The running kernel."""

    release: str = doc("Its version.")
    btf: bool = doc("Whether it has type information (BTF), which the probe needs.")


class DoctorProbe(Model):
    """The probe, as the daemon sees it."""

    kind: str | None = doc("Which probe; null if unknown.")
    state: str | None = doc("Its state; null if unknown.")
    why: str | None = doc("Why that is unknown; null if it is known.")


class ProgramCost(Model):
    """One BPF program of the probe."""

    id: int = doc("Its number in the kernel.")
    name: str = doc("Its name.")
    runs: int = doc("How often it ran.", "runs")
    run_ns: int = doc("The time that it took.", "ns")
    ns_per_run: float | None = doc("Time of one run; null if it did not run.", "ns")


class CostReport(Model):
    """The CPU time of the probe, if the kernel counts it."""

    pid: int | None = doc("The probe's process ID.")
    counting: bool = doc("Whether the kernel counts now.")
    why: str = doc("Why nothing is known; empty if something is.")
    window_ns: int | None = doc("Length of the measurement.", "ns")
    runs: int = doc("Runs of all programs.", "runs")
    ns_per_run: float | None = doc("Time of one run; null if unknown.", "ns")
    empty_run_ns: float = doc("Time that counting itself takes.", "ns")
    programs: list[ProgramCost] = doc("By program.")


class DeviceReport(Model):
    """A block device under a volume."""

    name: str = doc("Its name.")
    devno: str = doc("Its device numbers.", example="254:0")
    size_bytes: int = doc("Its size.", "B")
    rotational: bool | None = doc("Whether it is a hard disk.")
    scheduler: str | None = doc("Its I/O scheduler.")
    schedulers: list[str] = doc("Available schedulers.")
    nr_requests: int | None = doc("Length of its queue.", "requests")
    queue_depth: int | None = doc("Requests that it takes at once.", "requests")


class KnobReport(Model):
    """A knob, and whether ebbgate changes it."""

    name: str = doc("Its kernel name.")
    value: str | None = doc("As the kernel writes it.")
    original: str | None = doc("The value before ebbgate.")
    owner: str = doc("kernel, ebbgate or manual; unknown where ebbgated gives no status.")
    touch: str = doc("tuned (in enforce), shown, or manual.")
    about: str = doc("What it does.")
    path: str = doc("Its file.")


class VolumeReport(Model):
    """A volume as the kernel shows it."""

    volume: str = doc("The volume.")
    title: str = doc("Its display name.")
    kind: str = doc("bcache, dm-cache or dm-writecache.")
    mode: str | None = doc("observe, advise or enforce; null if unknown.")
    state: str | None = doc("The state that the kernel reports.")
    cache_mode: str | None = doc("writeback, writethrough and so on.")
    backing: DeviceReport = doc("The slow device.")
    caches: list[DeviceReport] = doc("The fast ones.")
    knobs: list[KnobReport] = doc("All knobs of this kernel.")


class DoctorReport(Model):
    """What works on this machine, and what does not."""

    kernel: Kernel = doc("The kernel of this machine.")
    probe: DoctorProbe = doc("The probe.")
    signals: dict[str, str] = doc("Each signal: ok, or what is missing.")
    cost: CostReport = doc("CPU time of the probe.")
    volumes: list[VolumeReport] = doc("Volumes that this process may read.")
    unknown: list[NotChecked] = doc("What it may not read.")
    missing: list[str] = doc("What is missing, one sentence each.")
