// SPDX-License-Identifier: GPL-2.0-only
// The hit ratios of caches of other sizes, from the miss-ratio curve. Pure.
import type { MissRatio } from "../api/types";

/** The curve ends at a 16th and at 16 times the present size (ebbgate/model/status.py). */
export const OCTAVES = 4;

/** The hit ratio of a cache so many times twice (or half) as large; null if unknown. */
export function hitRatio(curve: MissRatio, octaves: number): number | null {
  const steps = (curve.miss_ratios.length - 1) / (2 * OCTAVES);
  const miss = curve.miss_ratios[(OCTAVES + octaves) * steps];
  return miss === undefined ? null : 1 - miss;
}

/** The curve as an SVG path, in a box from the upper left corner; hit ratio 1 is at the top. */
export function path(curve: MissRatio, width: number, height: number): string {
  const last = curve.miss_ratios.length - 1;
  const points = curve.miss_ratios.map(
    (miss, i) => `${((i / last) * width).toFixed(1)} ${(miss * height).toFixed(1)}`,
  );
  return `M${points.join("L")}`;
}
