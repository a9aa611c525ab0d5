// SPDX-License-Identifier: GPL-2.0-only
// The timeline: turns knob writes into bars and decisions into marks. Pure.
import type { Maybe } from "./format";

export interface Write {
  id: number;
  at: number;
  knob: string;
  old: Maybe<string>;
  new: string;
  strategy: string;
  outcome: string;
  /** The value that the kernel showed afterwards. */
  read_back: Maybe<string>;
}

/** In place of a strategy: somebody else wrote the value. */
export const MANUAL = "manual";

export interface Bar {
  from: number;
  until: number;
  value: Maybe<string>;
  /** Which strategy wrote it, or `MANUAL`; null for the value before the first write. */
  strategy: string | null;
}

export interface Lane {
  knob: string;
  bars: Bar[];
}

interface Step {
  at: number;
  old: Maybe<string>;
  value: string;
  strategy: string;
}

/** One lane for each knob, with its values over time. Only writes that changed it count. */
export function lanes(writes: readonly Write[], since: number, until: number): Lane[] {
  const byKnob = new Map<string, Step[]>();
  for (const write of [...writes].sort((a, b) => a.at - b.at || a.id - b.id)) {
    const step = stepOf(write);
    if (step === null) continue;
    const found = byKnob.get(write.knob);
    if (found) found.push(step);
    else byKnob.set(write.knob, [step]);
  }
  const names = [...byKnob.keys()].sort();
  return names.map((knob) => ({ knob, bars: bars(byKnob.get(knob) ?? [], since, until) }));
}

function stepOf({ at, old, new: value, strategy, outcome, read_back }: Write): Step | null {
  if (outcome === "changed") return { at, old, value, strategy };
  // Without the value that was found, ebbgate only left alone what it had found before.
  if (outcome === "manual" && read_back != null)
    return { at, old, value: read_back, strategy: MANUAL };
  return null;
}

function bars(steps: readonly Step[], since: number, until: number): Bar[] {
  const found: Bar[] = [];
  const first = steps[0];
  if (first && first.at > since) {
    found.push({ from: since, until: first.at, value: first.old, strategy: null });
  }
  steps.forEach(({ at, value, strategy }, index) => {
    const end = steps[index + 1]?.at ?? until;
    if (end <= since) return;
    const from = Math.max(at, since);
    const last = found.at(-1);
    // Writing the same value again changes nothing.
    if (last?.value === value && last.strategy === strategy) last.until = end;
    else found.push({ from, until: end, value, strategy });
  });
  return found.filter((bar) => bar.until > bar.from);
}

/** A period, and the part of it of which all writes are known. */
export interface Period {
  since: number;
  until: number;
  known: number;
  end: number;
}

export interface Mark<T> {
  /** 0..1 on the time axis. */
  at: number;
  items: T[];
}

/** Marks for items in time. Items nearer than `apart` (0..1) share one, so that each can be clicked. */
export function marks<T extends { at: number }>(
  items: readonly T[],
  since: number,
  until: number,
  apart: number,
): Mark<T>[] {
  const found: Mark<T>[] = [];
  for (const item of [...items].sort((a, b) => a.at - b.at)) {
    if (item.at < since || item.at > until) continue;
    const at = (item.at - since) / (until - since);
    const last = found.at(-1);
    if (last && at - last.at < apart) last.items.push(item);
    else found.push({ at, items: [item] });
  }
  return found;
}
