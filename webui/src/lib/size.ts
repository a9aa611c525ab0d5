// SPDX-License-Identifier: GPL-2.0-only
// Parses typed sizes (`512MiB`, `1.5 GiB`) as the command line does, and ranges. Pure.
import { bytes } from "./format";

const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** Bytes; only 0 needs no unit. Null if the text is not a size. */
export function parseBytes(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$/.exec(text.trim());
  if (!match?.[1]) return null;
  const number = Number(match[1]);
  if (match[2] === "") return number === 0 ? 0 : null;
  const unit = BYTES[match[2] ?? ""];
  if (unit === undefined) return null;
  const value = Math.round(number * unit);
  // Beyond this JSON would not carry it exactly.
  return Number.isSafeInteger(value) ? value : null;
}

export interface Range {
  from_bytes: number;
  to_bytes: number;
}

/** The typed range, or what is wrong with it. */
export function parseRange(from: string, to: string): Range | string {
  const [first, end] = [parseBytes(from), parseBytes(to)];
  if (first === null || end === null) {
    const which = first === null ? "From" : "To";
    return `${which}: enter a number and B, KiB, MiB, GiB or TiB, such as 512MiB or 10GiB.`;
  }
  if (end <= first) return "To: enter a size beyond From, because the range ends there.";
  return { from_bytes: first, to_bytes: end };
}

/** `1 MiB to 10 GiB`. */
export function rangeLabel(range: Range): string {
  return `${bytes(range.from_bytes)} to ${bytes(range.to_bytes)}`;
}

/** The target of a warm-up: a range in bytes gets units, a path stays as it is. */
export function targetLabel(target: string): string {
  const match = /^(\d+)-(\d+)$/.exec(target);
  if (!match) return target;
  return rangeLabel({ from_bytes: Number(match[1]), to_bytes: Number(match[2]) });
}
