// SPDX-License-Identifier: GPL-2.0-only
// Words on a volume that several pages use.
import type { Volume, Wish } from "../api/types";
import { knobValue, nanoseconds, rate, seconds, UNKNOWN } from "../lib/format";

export const HIT_RATIO =
  "Share of the read requests of the last minutes that found all their data in the cache. A read that " +
  "found a part of it counts as a miss, as bcache counts it. Without a read it is unknown.";
export const TIME_TO_FULL =
  "When the kernel would stop caching writes, if dirty data went on coming in and going out as now.";
export const DESTAGE = "Moving dirty data from the cache to the backing device.";

export const REGIMES: Readonly<Record<string, string>> = {
  gap: "Nobody asks for anything now.",
  burst: "Many requests at once.",
  stream: "A long sequential run.",
  light: "Few requests.",
  unknown: "The foreground is not measured.",
};

/** `4 min`, or `never` for what will not happen at this pace. */
export function forecast(volume: Volume, name: "time_to_full_s" | "time_to_clean_s"): string {
  return volume.never.includes(name) ? "never" : seconds(volume[name]);
}

/** `paced 40 MiB/s`, `closed`, `kernel`: how destage is let through. */
export function gateWord(volume: Volume): string {
  const gate = volume.gate;
  if (gate.kind === "released") return "kernel";
  const moving = (gate.kind === "paced" || gate.kind === "pulsed") && gate.rate_bytes_per_s > 0;
  return moving ? `${gate.kind} ${rate(gate.rate_bytes_per_s)}` : gate.kind;
}

export function policyWord(volume: Volume): string {
  return volume.overlay ? `${volume.policy} (${volume.overlay})` : volume.policy;
}

export function wishWord(wish: Wish): string {
  const what = wish.knob ? `${wish.knob} ${knobValue(wish.knob, wish.value)}` : wish.kind;
  const lasts = wish.left_ns === null ? "until released" : `for ${nanoseconds(wish.left_ns)} more`;
  return `${what}, as ${wish.who} asked, ${lasts}`;
}

export function load(volume: Volume, op: "read" | "write"): string {
  const rates = volume.foreground?.[op];
  return rates ? rate(rates.bytes_per_s) : UNKNOWN;
}
