// SPDX-License-Identifier: GPL-2.0-only
// Parses typed durations (`10min`, `2 h`) and times of day. Pure.

const NS: Readonly<Record<string, number>> = {
  ms: 1e6,
  s: 1e9,
  min: 60e9,
  h: 3600e9,
  d: 86400e9,
};

/** Nanoseconds; null if the text is not a duration. */
export function parseNs(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/.exec(text.trim());
  const unit = NS[match?.[2] ?? ""];
  if (!match?.[1] || unit === undefined) return null;
  const value = Math.round(Number(match[1]) * unit);
  return value > 0 ? value : null;
}

/** Nanoseconds until the next `06:00` after `now`, in local time; null if the text is not a time. */
export function untilClockNs(text: string, now: Date): number | null {
  const match = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text.trim());
  if (!match) return null;
  const due = new Date(now);
  due.setHours(Number(match[1]), Number(match[2]), 0, 0);
  if (due.getTime() <= now.getTime()) due.setDate(due.getDate() + 1);
  return (due.getTime() - now.getTime()) * 1e6;
}
