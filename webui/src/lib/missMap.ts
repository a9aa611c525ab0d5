// SPDX-License-Identifier: GPL-2.0-only
// Misses by part of a volume, drawn as rows of cells: geometry, keys and summaries. Pure.
import type { Heat } from "../api/types";
import { count } from "./format";

// Narrower boxes (px) get half as many cells in a row, so that each can be seen.
const WIDE_PX = 600;
const COLUMNS_WIDE = 64;
const COLUMNS_NARROW = 32;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** A part of the volume; `from` and `end` in bytes, what was moved and so on in MiB. */
export interface Part {
  index: number;
  from: number;
  end: number;
  misses: number;
  moved: number;
  pending: number;
  heldOut: number;
}

export function columnsOf(width: number): number {
  return width < WIDE_PX ? COLUMNS_NARROW : COLUMNS_WIDE;
}

export function partAt(heat: Heat, index: number): Part {
  return {
    index,
    from: index * heat.bin_bytes,
    end: (index + 1) * heat.bin_bytes,
    misses: heat.bins[index] ?? 0,
    moved: heat.moved[index] ?? 0,
    pending: heat.pending[index] ?? 0,
    heldOut: heat.held_out[index] ?? 0,
  };
}

/** `2,848 to 2,880 MiB`: parts are whole MiB, and of large volumes whole GiB. */
export function placeText(part: Part): string {
  const inGib = part.from % GIB === 0 && part.end % GIB === 0;
  const write = (at: number): string => count(at / (inGib ? GIB : MIB));
  return `${write(part.from)} to ${write(part.end)} ${inGib ? "GiB" : "MiB"}`;
}

/** The parts with the most misses, the hottest first. */
export function hottest(heat: Heat, most: number): Part[] {
  return heat.bins
    .map((_, index) => partAt(heat, index))
    .filter((part) => part.misses > 0)
    .sort((a, b) => b.misses - a.misses)
    .slice(0, most);
}

/** The smallest share of the volume that has half of the misses; null without any. */
export function halfShare(bins: readonly number[]): number | null {
  const half = bins.reduce((sum, each) => sum + each, 0) / 2;
  if (half <= 0) return null;
  let [found, parts] = [0, 0];
  for (const each of [...bins].sort((a, b) => b - a)) {
    if (found >= half) break;
    found += each;
    parts += 1;
  }
  return parts / bins.length;
}

/** Misses per minute; null where no time was observed. */
export function perMinute(heat: Pick<Heat, "observed_ns">, misses: number): number | null {
  return heat.observed_ns > 0 ? (misses * 60e9) / heat.observed_ns : null;
}

/** The cell that a key leads to; null for other keys. */
export function cellByKey(
  key: string,
  from: number,
  cells: number,
  columns: number,
): number | null {
  const steps: Record<string, number> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
    Home: -cells,
    End: cells,
  };
  const step = steps[key];
  return step === undefined ? null : Math.max(0, Math.min(cells - 1, from + step));
}

/** The cell at a point of the picture (0..1 from its upper left corner); null beside all cells. */
export function cellAt(x: number, y: number, cells: number, columns: number): number | null {
  const rows = Math.ceil(cells / columns);
  const [column, row] = [Math.floor(x * columns), Math.floor(y * rows)];
  const cell = row * columns + column;
  const inside = column >= 0 && column < columns && row >= 0 && cell < cells;
  return inside ? cell : null;
}
