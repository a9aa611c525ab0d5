// SPDX-License-Identifier: GPL-2.0-only
// The arguments of a requested change in words. Pure.
import { bytes, nanoseconds, rate } from "./format";

/** By the end of a name, which is its unit. The longest come first. */
const UNITS: readonly (readonly [string, (value: number) => string])[] = [
  ["_bytes_per_s", rate],
  ["_bytes", bytes],
  ["_ns", nanoseconds],
];

/** `for 10 min`, `from 0 B, to 10 GiB`; without the text of a policy. */
export function argsText(args: Readonly<Record<string, unknown>>): string {
  return Object.entries(args)
    .filter(([name]) => name !== "text")
    .map(([name, value]) => argText(name, value))
    .join(", ");
}

function argText(name: string, value: unknown): string {
  const unit = UNITS.find(([end]) => name.endsWith(end));
  if (unit === undefined || typeof value !== "number") return `${name} ${String(value)}`;
  const [end, write] = unit;
  return `${name.slice(0, -end.length)} ${write(value)}`;
}
