// SPDX-License-Identifier: GPL-2.0-only
// Formats values for display, as the command line does (ebbgate/units.py). Pure.
// An unknown value is a dash, never zero.

export const UNKNOWN = "–";

const BYTE_SUFFIXES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;
const SECTOR_BYTES = 512;
// bcache shows an unlimited rate as INT_MAX sectors/s.
const UNLIMITED_SECTORS_PER_S = 2 ** 30;
// By name, the bytes of the kernel's unit.
const SIZE_KNOBS = new Map([
  ["sequential_cutoff", 1],
  ["migration_threshold", SECTOR_BYTES],
]);
const RATE_KNOBS = new Set(["writeback_rate", "writeback_rate_minimum"]);

export type Maybe<T> = T | null | undefined;

function short(value: number): string {
  return Number.isInteger(value) || Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1);
}

/** `64 KiB`, `1.5 GiB`; three significant digits at most. */
export function bytes(count: Maybe<number>): string {
  if (count == null) return UNKNOWN;
  let value = count;
  for (const suffix of BYTE_SUFFIXES) {
    if (Math.abs(value) < 1024 || suffix === "PiB") return `${short(value)} ${suffix}`;
    value /= 1024;
  }
  return UNKNOWN;
}

/** `12.5 MiB/s`. */
export function rate(bytesPerSecond: Maybe<number>): string {
  return bytesPerSecond == null ? UNKNOWN : `${bytes(bytesPerSecond)}/s`;
}

/** `410 ms`, `2.5 s`, `4 min`, `3 d`; `never` for infinity. */
export function seconds(value: Maybe<number>): string {
  if (value == null || Number.isNaN(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size === Infinity) return "never";
  if (size === 0) return "0 s";
  if (size < 1e-6) return `${short(value * 1e9)} ns`;
  if (size < 1e-3) return `${short(value * 1e6)} µs`;
  if (size < 1) return `${short(value * 1e3)} ms`;
  if (size < 120) return `${short(value)} s`;
  if (size < 7200) return `${short(value / 60)} min`;
  if (size < 172800) return `${short(value / 3600)} h`;
  return `${short(value / 86400)} d`;
}

export function nanoseconds(value: Maybe<number>): string {
  return value == null ? UNKNOWN : seconds(value / 1e9);
}

/** `34%`, `3.4%`; 0..1 in. */
export function ratio(value: Maybe<number>): string {
  if (value == null) return UNKNOWN;
  const percent = value * 100;
  return `${Math.abs(percent) >= 10 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)}%`;
}

/** `1,234`, `12.5`; a plain count. */
export function count(value: Maybe<number>): string {
  if (value == null) return UNKNOWN;
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : 1;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** An age: `just now`, `12 s ago`, `3 min ago`. */
export function ago(ageSeconds: Maybe<number>): string {
  if (ageSeconds == null) return UNKNOWN;
  return ageSeconds < 2 ? "just now" : `${seconds(Math.floor(ageSeconds))} ago`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** `14:03:59`, local time. */
export function clock(unixSeconds: number): string {
  const at = new Date(unixSeconds * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** `2026-11-21`, local time. */
export function day(unixSeconds: number): string {
  const at = new Date(unixSeconds * 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export function dateTime(unixSeconds: Maybe<number>): string {
  return unixSeconds == null ? UNKNOWN : `${day(unixSeconds)} ${clock(unixSeconds)}`;
}

/** A knob's value with a unit where the kernel's value has none. */
export function knobValue(knob: string, value: Maybe<string>): string {
  if (value == null || value === "") return UNKNOWN;
  if (!/^\d+$/.test(value)) return value;
  const number = Number(value);
  const name = knob.slice(knob.lastIndexOf("/") + 1);
  const unit = SIZE_KNOBS.get(name);
  if (unit !== undefined) return bytes(number * unit);
  if (!RATE_KNOBS.has(name)) return value;
  return number > UNLIMITED_SECTORS_PER_S ? "unlimited" : rate(number * SECTOR_BYTES);
}

/** `1 knob`, `3 knobs`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}
