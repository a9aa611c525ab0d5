// SPDX-License-Identifier: GPL-2.0-only
// Labels and help texts that several pages use.
import type { Gate, Volume, Override } from "../api/types";
import { count, knobValue, nanoseconds, rate, seconds, UNKNOWN } from "../lib/format";

export const HIT_RATIO =
  "Share of read requests in the last minutes that were served entirely from the cache. Partial hits " +
  "count as misses, as in bcache. Unknown without reads.";
export const TIME_TO_FULL =
  "Time until the kernel stops caching writes, if dirty data keeps growing at the current rate.";
export const TIME_TO_CLEAN = "Time until all dirty data is written back, at the current rate.";
export const WRITE_BACK =
  "Moving dirty data from the cache to the backing device; reasons of decisions call it destage.";
export const GATE =
  "How much write-back ebbgate lets through (the gate). Stopped: none at all, so that the " +
  "disk can sleep. Held back: almost none, because users need the disk. Paced: at this rate. Open: at full speed. " +
  "Resting: almost none for a moment, because a request is likely or the rate was too high. " +
  "Kernel default: ebbgate does not limit it.";
export const IDLE_WAIT =
  "How long there must be no request before write-back starts. Learned from the idle periods of this volume.";
export const DISTURBANCE =
  "How much longer requests took right after the last idle period in which data was written back, on average.";
export const DISK_STATE =
  "Whether the disks of the backing device turn: active, idle or standby (asleep). Asked for at most every 30 s, " +
  "without waking them.";
export const LOAD =
  "What users do now. Idle: no requests. Light: few. Burst: many at once. Stream: a long sequential run. " +
  "Reasons of decisions call it the regime.";

const GATES: Readonly<Record<string, string>> = {
  released: "kernel default",
  held: "stopped",
  closed: "held back",
};
// Settings whose internal names would mislead.
const SETTINGS: Readonly<Record<string, string>> = {
  destage: "write-back",
  gate: "write-back",
  sequential_cutoff: "sequential cutoff",
  congestion_bypass: "congestion bypass",
};

export function loadLabel(volume: Volume): string {
  return volume.regime === "gap" ? "idle" : volume.regime;
}

export function settingLabel(name: string): string {
  return SETTINGS[name] ?? name;
}

/** A state of the gate: `paced`, `held back`. */
export function gateKindLabel(kind: string): string {
  return GATES[kind] ?? kind;
}

/** `4 min`; `never` if it will not happen at the current rate. */
export function forecast(volume: Volume, name: "time_to_full_s" | "time_to_clean_s"): string {
  return volume.never.includes(name) ? "never" : seconds(volume[name]);
}

/** `paced 40 MiB/s`, `held back`, `kernel default`. */
export function gateLabel(gate: Pick<Gate, "kind" | "rate_bytes_per_s">): string {
  const moving = gate.kind === "paced" && gate.rate_bytes_per_s > 0;
  return moving ? `${gate.kind} ${rate(gate.rate_bytes_per_s)}` : gateKindLabel(gate.kind);
}

/** `3 ms longer`. */
export function disturbanceLabel(volume: Volume): string {
  return volume.disturbance_ns === null ? UNKNOWN : `${nanoseconds(volume.disturbance_ns)} longer`;
}

export function policyLabel(volume: Volume): string {
  return volume.overlay ? `${volume.policy} (${volume.overlay})` : volume.policy;
}

export function overrideLabel(override: Override): string {
  const what = override.knob
    ? `${override.knob} ${knobValue(override.knob, override.value)}`
    : override.kind;
  const lasts =
    override.left_ns === null ? "until released" : `for ${nanoseconds(override.left_ns)} more`;
  return `${what}, set by ${override.who}, ${lasts}`;
}

export function load(volume: Volume, op: "read" | "write"): string {
  const rates = volume.foreground?.[op];
  return rates ? `${rate(rates.bytes_per_s)}, ${count(rates.iops)} IOPS` : UNKNOWN;
}
