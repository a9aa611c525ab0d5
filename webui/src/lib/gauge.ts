// SPDX-License-Identifier: GPL-2.0-only
// Geometry of the gauge of dirty data, with floor and cutoff. Pure.
import { bytes, type Maybe } from "./format";

export interface Levels {
  dirtyBytes: Maybe<number>;
  cacheBytes: Maybe<number>;
  floorBytes: Maybe<number>;
  cutoffBytes: Maybe<number>;
}

/** Heights are shares (0..1) of the scale; null where unknown. */
export interface Gauge {
  scaleBytes: number | null;
  level: number | null;
  floor: number | null;
  cutoff: number | null;
  /** Does the scale show only a part of the cache? */
  zoomed: boolean;
  alarm: "none" | "near" | "over";
}

// From this share of the cutoff on, the level counts as near it.
const NEAR = 0.85;
// Height of the cutoff on a zoomed scale.
const CUTOFF_HEIGHT = 0.8;

export function gauge(levels: Levels): Gauge {
  const scaleBytes = scaleOf(levels);
  const share = (value: Maybe<number>): number | null =>
    value == null || scaleBytes === null ? null : Math.min(1, Math.max(0, value / scaleBytes));
  return {
    scaleBytes,
    level: share(levels.dirtyBytes),
    floor: share(levels.floorBytes),
    cutoff: share(levels.cutoffBytes),
    zoomed: scaleBytes !== null && levels.cacheBytes != null && scaleBytes < levels.cacheBytes,
    alarm: alarm(levels.dirtyBytes, levels.cutoffBytes),
  };
}

function scaleOf({ dirtyBytes, cacheBytes, cutoffBytes }: Levels): number | null {
  const known = [cacheBytes, cutoffBytes, dirtyBytes].filter((v) => v != null && v > 0) as number[];
  if (known.length === 0) return null;
  if (cutoffBytes == null || cutoffBytes <= 0) return Math.max(...known);
  const cut = Math.max(cutoffBytes / CUTOFF_HEIGHT, dirtyBytes ?? 0);
  return cacheBytes == null || cacheBytes <= 0
    ? cut
    : Math.min(cut, Math.max(cacheBytes, ...known));
}

function alarm(dirty: Maybe<number>, cutoff: Maybe<number>): Gauge["alarm"] {
  if (dirty == null || cutoff == null || cutoff <= 0) return "none";
  return dirty >= cutoff ? "over" : dirty >= NEAR * cutoff ? "near" : "none";
}

/** Describes the picture in one sentence. */
export function describe(levels: Levels): string {
  if (levels.dirtyBytes == null) return "Dirty data: unknown";
  const of = levels.cacheBytes == null ? "" : ` in a cache of ${bytes(levels.cacheBytes)}`;
  const floor =
    levels.floorBytes == null
      ? ""
      : `; write-back in idle periods from ${bytes(levels.floorBytes)}`;
  const cutoff =
    levels.cutoffBytes == null
      ? "; the level at which the kernel stops caching writes is unknown"
      : `; the kernel stops caching writes at ${bytes(levels.cutoffBytes)}`;
  return `Dirty data: ${bytes(levels.dirtyBytes)}${of}${floor}${cutoff}`;
}

/** Moves labels (0..1, any order) at least `apart` from each other and keeps them inside. */
export function spread(positions: readonly number[], apart: number): number[] {
  const order = positions.map((at, index) => ({ at, index })).sort((a, b) => a.at - b.at);
  let before = -Infinity;
  for (const label of order) {
    label.at = Math.max(label.at, before + apart, 0);
    before = label.at;
  }
  let after = 1 + apart;
  for (const label of [...order].reverse()) {
    label.at = Math.min(label.at, after - apart);
    after = label.at;
  }
  const result = new Array<number>(positions.length).fill(0);
  for (const label of order) result[label.index] = label.at;
  return result;
}
