# SPDX-License-Identifier: GPL-2.0-only
"""What the API says of advice and of the doctor's report. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ebbgate.web.models.field_doc import Of


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """One thing to do or to know."""

    id: Annotated[str, Of("A number that always means the same.", example="EBB-206")]
    volume: Annotated[str, Of("The volume.")]
    title: Annotated[str, Of("What people call the volume.")]
    weight: Annotated[
        str,
        Of(
            "fault: data or tuning is at risk; advice: measured here, or harmful whatever the load"
            " is; note: to know."
        ),
    ]
    severity: Annotated[str, Of("The weight in words: Problem, Recommended or Info.")]
    about: Annotated[str, Of("The volume or device that it is about.")]
    text: Annotated[str, Of("What to do and why.")]
    evidence: Annotated[list[str], Of("What was measured here.")]
    effect: Annotated[str | None, Of("What to expect of it.")]
    command: Annotated[str | None, Of("The command that does it by hand.")]
    lasts: Annotated[str | None, Of("What of it survives a reboot; null: nothing is to be done.")]
    keep: Annotated[str | None, Of("The line that makes it last, for the file in `lasts`.")]
    can_apply: Annotated[bool, Of("Would the daemon carry it out as the volume is now?")]
    why_not: Annotated[str | None, Of("Why it would not.")]
    undo: Annotated[str | None, Of("The command that takes it back once it is done.")]


@dataclass(frozen=True, slots=True)
class AppliedKnob:
    """A knob that an advice has set."""

    knob: Annotated[str, Of("The knob by its kernel name.", example="sequential_cutoff")]
    value: Annotated[str, Of("Its value as the kernel takes it.")]


@dataclass(frozen=True, slots=True)
class AppliedAdvice:
    """An advice that was applied and is in force. A request `release` for each of its knobs undoes
    it.
    """

    id: Annotated[str, Of("Its number.", example="EBB-206")]
    volume: Annotated[str, Of("The volume.")]
    title: Annotated[str, Of("What people call the volume.")]
    who: Annotated[str, Of("Who applied it.")]
    at_unix_s: Annotated[float, Of("When.", "s since 1970")]
    knobs: Annotated[list[AppliedKnob], Of("What it set and what is still in force.")]


@dataclass(frozen=True, slots=True)
class Unknown:
    """What could not be looked at, and why."""

    volume: Annotated[str | None, Of("The volume; null: not known either.")]
    title: Annotated[str | None, Of("What people call the volume.")]
    why: Annotated[str, Of("The reason, and the next step.")]


@dataclass(frozen=True, slots=True)
class AdviceList:
    """All advice that holds now, and what was applied."""

    advice: Annotated[list[AdviceRow], Of("Volume by volume.")]
    applied: Annotated[list[AppliedAdvice], Of("What is in force, the newest first.")]
    unknown: Annotated[list[Unknown], Of("What could not be looked at.")]


@dataclass(frozen=True, slots=True)
class Kernel:
    """The running kernel."""

    release: Annotated[str, Of("Its version.")]
    btf: Annotated[bool, Of("Does it describe its types? Without that no probe can run.")]


@dataclass(frozen=True, slots=True)
class DoctorProbe:
    """The probe, as the daemon says."""

    kind: Annotated[str | None, Of("Which; null: nobody says.")]
    state: Annotated[str | None, Of("What it does; null: nobody says.")]
    why: Annotated[str | None, Of("Why nobody does.")]


@dataclass(frozen=True, slots=True)
class ProgramCost:
    """One BPF program of the probe."""

    id: Annotated[int, Of("The kernel's number of it.")]
    name: Annotated[str, Of("Its name.")]
    runs: Annotated[int, Of("How often it ran.", "runs")]
    run_ns: Annotated[int, Of("How long that took.", "ns")]
    ns_per_run: Annotated[float | None, Of("Of one run; null: it did not run.", "ns")]


@dataclass(frozen=True, slots=True)
class CostReport:
    """What the probe costs, where the kernel counts it."""

    pid: Annotated[int | None, Of("The probe's process.")]
    counting: Annotated[bool, Of("Does the kernel count now?")]
    why: Annotated[str, Of("Why nothing is known; empty where something is.")]
    window_ns: Annotated[int | None, Of("The time that was counted.", "ns")]
    runs: Annotated[int, Of("Of all programs.", "runs")]
    ns_per_run: Annotated[float | None, Of("Of one run; null: not known.", "ns")]
    empty_run_ns: Annotated[float, Of("What counting itself costs.", "ns")]
    programs: Annotated[list[ProgramCost], Of("Each by itself.")]


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """A block device under a volume."""

    name: Annotated[str, Of("Its name.")]
    devno: Annotated[str, Of("Its numbers.", example="254:0")]
    size_bytes: Annotated[int, Of("Its size.", "B")]
    rotational: Annotated[bool | None, Of("Does it turn?")]
    scheduler: Annotated[str | None, Of("Its I/O scheduler.")]
    schedulers: Annotated[list[str], Of("Those that it could have.")]
    nr_requests: Annotated[int | None, Of("The length of its queue.", "requests")]
    queue_depth: Annotated[int | None, Of("How many it takes at once.", "requests")]


@dataclass(frozen=True, slots=True)
class KnobReport:
    """A knob, and whether ebbgate may touch it."""

    name: Annotated[str, Of("Its kernel name.")]
    value: Annotated[str | None, Of("As the kernel takes it.")]
    original: Annotated[str | None, Of("What it was before ebbgate.")]
    owner: Annotated[str, Of("kernel, ebbgate or manual.")]
    touch: Annotated[str, Of("tuned (in enforce), shown, or manual.")]
    about: Annotated[str, Of("What it does.")]
    path: Annotated[str, Of("Its file.")]


@dataclass(frozen=True, slots=True)
class VolumeReport:
    """A volume as the kernel shows it."""

    volume: Annotated[str, Of("The volume.")]
    title: Annotated[str, Of("What people call it.")]
    kind: Annotated[str, Of("bcache, dm-cache or dm-writecache.")]
    mode: Annotated[str | None, Of("How far ebbgate goes with it; null: nobody says.")]
    state: Annotated[str | None, Of("The kernel's own word.")]
    cache_mode: Annotated[str | None, Of("writeback, writethrough and so on.")]
    backing: Annotated[DeviceReport, Of("The slow device.")]
    caches: Annotated[list[DeviceReport], Of("The fast ones.")]
    knobs: Annotated[list[KnobReport], Of("Every knob of this kernel.")]


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What works here, and what does not."""

    kernel: Annotated[Kernel, Of("The running kernel.")]
    probe: Annotated[DoctorProbe, Of("The probe.")]
    signals: Annotated[dict[str, str], Of("Each signal: ok, or what is missing.")]
    cost: Annotated[CostReport, Of("What the probe costs.")]
    volumes: Annotated[list[VolumeReport], Of("All that this process may look at.")]
    unknown: Annotated[list[Unknown], Of("What it may not look at.")]
    missing: Annotated[list[str], Of("What is missing, each in a sentence.")]
