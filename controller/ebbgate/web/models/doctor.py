# SPDX-License-Identifier: GPL-2.0-only
"""Models of advice and of the doctor's report. Pure data."""

from __future__ import annotations

from typing import Annotated

from ebbgate.web.models.base import Model, doc


class Advice(Model):
    """A problem, recommendation or note."""

    id: Annotated[str, doc("A number that does not change its meaning.", example="EBB-206")]
    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("The volume's display name.")]
    weight: Annotated[
        str,
        doc(
            "fault: data or tuning is at risk; advice: measured here, or harmful whatever the load"
            " is; note: information."
        ),
    ]
    severity: Annotated[str, doc("The weight for people: Problem, Recommended or Info.")]
    about: Annotated[str, doc("The volume or device.")]
    text: Annotated[str, doc("What to do and why.")]
    evidence: Annotated[list[str], doc("What was measured here.")]
    effect: Annotated[str | None, doc("The expected effect; null if unknown.")]
    command: Annotated[str | None, doc("The command that does it; null if there is none.")]
    lasts: Annotated[str | None, doc("What of it survives a reboot; null if there is no command.")]
    keep: Annotated[
        str | None, doc("The line that makes it permanent, for the file named in `lasts`.")
    ]
    can_apply: Annotated[bool, doc("Whether the daemon can apply it now.")]
    why_not: Annotated[str | None, doc("Why not; null if it can.")]
    undo: Annotated[str | None, doc("The command that undoes it; null if there is none.")]


class AppliedKnob(Model):
    """A knob that a recommendation has set."""

    knob: Annotated[str, doc("The knob by its kernel name.", example="sequential_cutoff")]
    value: Annotated[str, doc("Its value as the kernel writes it.")]


class AppliedAdvice(Model):
    """A recommendation that was applied and is in force. A `release` of each of its knobs undoes
    it.
    """

    id: Annotated[str, doc("Its number.", example="EBB-206")]
    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("The volume's display name.")]
    who: Annotated[str, doc("Who applied it.")]
    at_unix_s: Annotated[float, doc("When.", "s since 1970")]
    knobs: Annotated[list[AppliedKnob], doc("What it set that is still in force.")]


class NotChecked(Model):
    """What could not be checked, and why."""

    volume: Annotated[str | None, doc("The volume; null if unknown.")]
    title: Annotated[str | None, doc("The volume's display name.")]
    why: Annotated[str, doc("The reason, and the next step.")]


class AdviceList(Model):
    """All current advice, and what was applied."""

    advice: Annotated[list[Advice], doc("By volume.")]
    applied: Annotated[list[AppliedAdvice], doc("In force, newest first.")]
    unknown: Annotated[list[NotChecked], doc("What could not be checked.")]


class Kernel(Model):
    """The running kernel."""

    release: Annotated[str, doc("Its version.")]
    btf: Annotated[bool, doc("Whether it has type information (BTF), which the probe needs.")]


class DoctorProbe(Model):
    """The probe, as the daemon sees it."""

    kind: Annotated[str | None, doc("Which probe; null if unknown.")]
    state: Annotated[str | None, doc("Its state; null if unknown.")]
    why: Annotated[str | None, doc("Why that is unknown; null if it is known.")]


class ProgramCost(Model):
    """One BPF program of the probe."""

    id: Annotated[int, doc("Its number in the kernel.")]
    name: Annotated[str, doc("Its name.")]
    runs: Annotated[int, doc("How often it ran.", "runs")]
    run_ns: Annotated[int, doc("The time that it took.", "ns")]
    ns_per_run: Annotated[float | None, doc("Time of one run; null if it did not run.", "ns")]


class CostReport(Model):
    """The CPU time of the probe, if the kernel counts it."""

    pid: Annotated[int | None, doc("The probe's process ID.")]
    counting: Annotated[bool, doc("Whether the kernel counts now.")]
    why: Annotated[str, doc("Why nothing is known; empty if something is.")]
    window_ns: Annotated[int | None, doc("Length of the measurement.", "ns")]
    runs: Annotated[int, doc("Runs of all programs.", "runs")]
    ns_per_run: Annotated[float | None, doc("Time of one run; null if unknown.", "ns")]
    empty_run_ns: Annotated[float, doc("Time that counting itself takes.", "ns")]
    programs: Annotated[list[ProgramCost], doc("By program.")]


class DeviceReport(Model):
    """A block device under a volume."""

    name: Annotated[str, doc("Its name.")]
    devno: Annotated[str, doc("Its device numbers.", example="254:0")]
    size_bytes: Annotated[int, doc("Its size.", "B")]
    rotational: Annotated[bool | None, doc("Whether it is a hard disk.")]
    scheduler: Annotated[str | None, doc("Its I/O scheduler.")]
    schedulers: Annotated[list[str], doc("Available schedulers.")]
    nr_requests: Annotated[int | None, doc("Length of its queue.", "requests")]
    queue_depth: Annotated[int | None, doc("Requests that it takes at once.", "requests")]


class KnobReport(Model):
    """A knob, and whether ebbgate changes it."""

    name: Annotated[str, doc("Its kernel name.")]
    value: Annotated[str | None, doc("As the kernel writes it.")]
    original: Annotated[str | None, doc("The value before ebbgate.")]
    owner: Annotated[str, doc("kernel, ebbgate or manual.")]
    touch: Annotated[str, doc("tuned (in enforce), shown, or manual.")]
    about: Annotated[str, doc("What it does.")]
    path: Annotated[str, doc("Its file.")]


class VolumeReport(Model):
    """A volume as the kernel shows it."""

    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("Its display name.")]
    kind: Annotated[str, doc("bcache, dm-cache or dm-writecache.")]
    mode: Annotated[str | None, doc("observe, advise or enforce; null if unknown.")]
    state: Annotated[str | None, doc("The state that the kernel reports.")]
    cache_mode: Annotated[str | None, doc("writeback, writethrough and so on.")]
    backing: Annotated[DeviceReport, doc("The slow device.")]
    caches: Annotated[list[DeviceReport], doc("The fast ones.")]
    knobs: Annotated[list[KnobReport], doc("All knobs of this kernel.")]


class DoctorReport(Model):
    """What works on this machine, and what does not."""

    kernel: Annotated[Kernel, doc("The kernel of this machine.")]
    probe: Annotated[DoctorProbe, doc("The probe.")]
    signals: Annotated[dict[str, str], doc("Each signal: ok, or what is missing.")]
    cost: Annotated[CostReport, doc("CPU time of the probe.")]
    volumes: Annotated[list[VolumeReport], doc("Volumes that this process may read.")]
    unknown: Annotated[list[NotChecked], doc("What it may not read.")]
    missing: Annotated[list[str], doc("What is missing, one sentence each.")]
