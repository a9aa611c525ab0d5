// SPDX-License-Identifier: GPL-2.0-only
// The latency heat map: counts per time and bucket to shades. Pure.

export type Counts = readonly (readonly number[] | null)[];

export interface HeatRange {
  /** First, and one past the last, bucket that is not empty. */
  first: number;
  end: number;
  countMax: number;
}

/** The range to draw; null without requests. */
export function range(counts: Counts): HeatRange | null {
  let [first, end, countMax] = [Infinity, 0, 0];
  for (const row of counts) {
    row?.forEach((count, bucket) => {
      if (count <= 0) return;
      first = Math.min(first, bucket);
      end = Math.max(end, bucket + 1);
      countMax = Math.max(countMax, count);
    });
  }
  return countMax > 0 ? { first, end, countMax } : null;
}

/** The shade of a count, 1..shades; 0: none. Logarithmic, so that rare slow requests are visible. */
export function shade(count: number, countMax: number, shades: number): number {
  if (count <= 0 || countMax <= 0) return 0;
  if (countMax <= 1) return shades;
  const height = Math.log(Math.max(count, 1)) / Math.log(countMax);
  return Math.min(shades, 1 + Math.floor(height * (shades - 1) + 1e-9));
}

/** The smallest count of each shade 1..shades, for the legend. */
export function shadeFrom(countMax: number, shades: number): number[] {
  return Array.from({ length: shades }, (_, i) =>
    Math.max(1, Math.ceil(countMax ** (i / (shades - 1)) - 1e-9)),
  );
}

/** The latency (upper edge of its bucket) that a share of the requests did not exceed. */
export function percentile(
  row: readonly number[],
  edgesSeconds: readonly number[],
  quantile: number,
): number | null {
  const total = row.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return null;
  let seen = 0;
  for (let bucket = 0; bucket < row.length; bucket += 1) {
    seen += row[bucket] ?? 0;
    if (seen >= quantile * total) return edgesSeconds[bucket] ?? null;
  }
  return null;
}

/** Sum over all times. */
export function sum(counts: Counts): number[] {
  const total: number[] = [];
  for (const row of counts) {
    row?.forEach((count, bucket) => {
      total[bucket] = (total[bucket] ?? 0) + count;
    });
  }
  return Array.from(total, (count: number | undefined) => count ?? 0);
}
