# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of advice and of the doctor's report. Pure data."""

from __future__ import annotations

from typing import Annotated

from ebbgate.web.models.base import Model, doc


class AdviceRow(Model):
    """One thing to do or to know."""

    id: Annotated[str, doc("A number that always means the same.", example="EBB-206")]
    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("What people call the volume.")]
    weight: Annotated[
        str,
        doc(
            "fault: data or tuning is at risk; advice: measured here, or harmful whatever the load"
            " is; note: to know."
        ),
    ]
    severity: Annotated[str, doc("The weight in words: Problem, Recommended or Info.")]
    about: Annotated[str, doc("The volume or device that it is about.")]
    text: Annotated[str, doc("What to do and why.")]
    evidence: Annotated[list[str], doc("What was measured here.")]
    effect: Annotated[str | None, doc("What to expect of it.")]
    command: Annotated[str | None, doc("The command that does it by hand.")]
    lasts: Annotated[str | None, doc("What of it survives a reboot; null: nothing is to be done.")]
    keep: Annotated[str | None, doc("The line that makes it last, for the file in `lasts`.")]
    can_apply: Annotated[bool, doc("Would the daemon carry it out as the volume is now?")]
    why_not: Annotated[str | None, doc("Why it would not.")]
    undo: Annotated[str | None, doc("The command that takes it back once it is done.")]


class AppliedKnob(Model):
    """A knob that an advice has set."""

    knob: Annotated[str, doc("The knob by its kernel name.", example="sequential_cutoff")]
    value: Annotated[str, doc("Its value as the kernel takes it.")]


class AppliedAdvice(Model):
    """An advice that was applied and is in force. A request `release` for each of its knobs undoes
    it.
    """

    id: Annotated[str, doc("Its number.", example="EBB-206")]
    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("What people call the volume.")]
    who: Annotated[str, doc("Who applied it.")]
    at_unix_s: Annotated[float, doc("When.", "s since 1970")]
    knobs: Annotated[list[AppliedKnob], doc("What it set and what is still in force.")]


class Unknown(Model):
    """What could not be looked at, and why."""

    volume: Annotated[str | None, doc("The volume; null: not known either.")]
    title: Annotated[str | None, doc("What people call the volume.")]
    why: Annotated[str, doc("The reason, and the next step.")]


class AdviceList(Model):
    """All advice that holds now, and what was applied."""

    advice: Annotated[list[AdviceRow], doc("Volume by volume.")]
    applied: Annotated[list[AppliedAdvice], doc("What is in force, the newest first.")]
    unknown: Annotated[list[Unknown], doc("What could not be looked at.")]


class Kernel(Model):
    """The running kernel."""

    release: Annotated[str, doc("Its version.")]
    btf: Annotated[bool, doc("Does it describe its types? Without that no probe can run.")]


class DoctorProbe(Model):
    """The probe, as the daemon says."""

    kind: Annotated[str | None, doc("Which; null: nobody says.")]
    state: Annotated[str | None, doc("What it does; null: nobody says.")]
    why: Annotated[str | None, doc("Why nobody does.")]


class ProgramCost(Model):
    """One BPF program of the probe."""

    id: Annotated[int, doc("The kernel's number of it.")]
    name: Annotated[str, doc("Its name.")]
    runs: Annotated[int, doc("How often it ran.", "runs")]
    run_ns: Annotated[int, doc("How long that took.", "ns")]
    ns_per_run: Annotated[float | None, doc("Of one run; null: it did not run.", "ns")]


class CostReport(Model):
    """What the probe costs, where the kernel counts it."""

    pid: Annotated[int | None, doc("The probe's process.")]
    counting: Annotated[bool, doc("Does the kernel count now?")]
    why: Annotated[str, doc("Why nothing is known; empty where something is.")]
    window_ns: Annotated[int | None, doc("The time that was counted.", "ns")]
    runs: Annotated[int, doc("Of all programs.", "runs")]
    ns_per_run: Annotated[float | None, doc("Of one run; null: not known.", "ns")]
    empty_run_ns: Annotated[float, doc("What counting itself costs.", "ns")]
    programs: Annotated[list[ProgramCost], doc("Each by itself.")]


class DeviceReport(Model):
    """A block device under a volume."""

    name: Annotated[str, doc("Its name.")]
    devno: Annotated[str, doc("Its numbers.", example="254:0")]
    size_bytes: Annotated[int, doc("Its size.", "B")]
    rotational: Annotated[bool | None, doc("Does it turn?")]
    scheduler: Annotated[str | None, doc("Its I/O scheduler.")]
    schedulers: Annotated[list[str], doc("Those that it could have.")]
    nr_requests: Annotated[int | None, doc("The length of its queue.", "requests")]
    queue_depth: Annotated[int | None, doc("How many it takes at once.", "requests")]


class KnobReport(Model):
    """A knob, and whether ebbgate may touch it."""

    name: Annotated[str, doc("Its kernel name.")]
    value: Annotated[str | None, doc("As the kernel takes it.")]
    original: Annotated[str | None, doc("What it was before ebbgate.")]
    owner: Annotated[str, doc("kernel, ebbgate or manual.")]
    touch: Annotated[str, doc("tuned (in enforce), shown, or manual.")]
    about: Annotated[str, doc("What it does.")]
    path: Annotated[str, doc("Its file.")]


class VolumeReport(Model):
    """A volume as the kernel shows it."""

    volume: Annotated[str, doc("The volume.")]
    title: Annotated[str, doc("What people call it.")]
    kind: Annotated[str, doc("bcache, dm-cache or dm-writecache.")]
    mode: Annotated[str | None, doc("How far ebbgate goes with it; null: nobody says.")]
    state: Annotated[str | None, doc("The kernel's own word.")]
    cache_mode: Annotated[str | None, doc("writeback, writethrough and so on.")]
    backing: Annotated[DeviceReport, doc("The slow device.")]
    caches: Annotated[list[DeviceReport], doc("The fast ones.")]
    knobs: Annotated[list[KnobReport], doc("Every knob of this kernel.")]


class DoctorReport(Model):
    """What works here, and what does not."""

    kernel: Annotated[Kernel, doc("The kernel of this machine.")]
    probe: Annotated[DoctorProbe, doc("The probe.")]
    signals: Annotated[dict[str, str], doc("Each signal: ok, or what is missing.")]
    cost: Annotated[CostReport, doc("What the probe costs.")]
    volumes: Annotated[list[VolumeReport], doc("All that this process may look at.")]
    unknown: Annotated[list[Unknown], doc("What it may not look at.")]
    missing: Annotated[list[str], doc("What is missing, each in a sentence.")]
