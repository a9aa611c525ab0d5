// SPDX-License-Identifier: GPL-2.0-only
// Columns of samples: gaps stay gaps. Pure.

export type Column = readonly (number | null)[];

/** Negative values, for a line drawn below zero. */
export function negated(column: Column): (number | null)[] {
  return column.map((value) => (value === null ? null : -value));
}

export interface Summary {
  last: number | null;
  min: number | null;
  max: number | null;
  mean: number | null;
  /** Share (0..1) of the times at which the value is known. */
  known: number;
}

export function summary(column: Column): Summary {
  const known = column.filter((value): value is number => value !== null);
  if (known.length === 0) return { last: null, min: null, max: null, mean: null, known: 0 };
  return {
    last: column.at(-1) ?? null,
    min: known.reduce((a, b) => Math.min(a, b)),
    max: known.reduce((a, b) => Math.max(a, b)),
    mean: known.reduce((a, b) => a + b, 0) / known.length,
    known: known.length / column.length,
  };
}

/** How many rows there are up to the last one with a value in any column. */
export function recorded(columns: readonly (readonly unknown[])[]): number {
  let rows = 0;
  for (const values of columns) {
    values.forEach((each, i) => {
      if (each !== null) rows = Math.max(rows, i + 1);
    });
  }
  return rows;
}

/** The sum of the known values; null if none is known. */
export function total(column: Column | undefined): number | null {
  const known = (column ?? []).filter((value): value is number => value !== null);
  return known.length === 0 ? null : known.reduce((a, b) => a + b, 0);
}

/** The column with this name; a missing one is null throughout. */
export function column(
  columns: Readonly<Record<string, Column | undefined>>,
  name: string,
  length: number,
): Column {
  const found = columns[name];
  return found?.length === length ? found : new Array<null>(length).fill(null);
}

/** At most `most` row numbers, evenly spaced, with the first and the last. */
export function thinned(length: number, most: number): number[] {
  if (length <= most) return Array.from({ length }, (_, i) => i);
  return Array.from({ length: most }, (_, i) => Math.round((i * (length - 1)) / (most - 1)));
}

/** Ticks of a byte axis: 1, 2 or 5 times a power of ten of a binary unit. */
export function byteTicks(max: number, most = 4): number[] {
  if (!(max > 0)) return [0];
  const unit = 1024 ** Math.floor(Math.log2(max) / 10);
  const raw = max / unit / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10;
  const ticks: number[] = [];
  for (let at = 0; at <= max; at += step * power * unit) ticks.push(at);
  return ticks;
}
