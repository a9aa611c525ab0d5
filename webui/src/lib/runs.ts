// SPDX-License-Identifier: GPL-2.0-only
// What a sequential cutoff would bypass, from the bytes by run length. Pure.
// The same arithmetic as ebbgate/signals/streams.py; bucket i holds runs of [512 * 2^i, 512 * 2^(i+1)) B.

export function bucketLowBytes(bucket: number): number {
  return 512 * 2 ** bucket;
}

/** Bytes in runs of at least `cutoffBytes`; linear inside a bucket. */
export function bytesBeyond(runs: readonly number[], cutoffBytes: number): number {
  let total = 0;
  runs.forEach((bytes, bucket) => {
    const low = bucketLowBytes(bucket);
    const high = bucketLowBytes(bucket + 1);
    if (cutoffBytes <= low) total += bytes;
    else if (cutoffBytes < high) total += (bytes * (high - cutoffBytes)) / (high - low);
  });
  return total;
}

/** The share (0..1) of bytes that a cutoff would bypass; null without bytes. */
export function shareBeyond(runs: readonly number[], cutoffBytes: number): number | null {
  const total = runs.reduce((sum, bytes) => sum + bytes, 0);
  return total > 0 ? bytesBeyond(runs, cutoffBytes) / total : null;
}

export function addRuns(first: readonly number[], second: readonly number[]): number[] {
  const length = Math.max(first.length, second.length);
  return Array.from({ length }, (_, i) => (first[i] ?? 0) + (second[i] ?? 0));
}

/** First, and one past the last, bucket that is not empty; null if all are. */
export function occupied(counts: readonly number[], trace = 0): [number, number] | null {
  const first = counts.findIndex((count) => count > trace);
  if (first < 0) return null;
  let last = counts.length - 1;
  while ((counts[last] ?? 0) <= trace) last -= 1;
  return [first, last + 1];
}

/** Position of a size between two buckets on a logarithmic axis (0..1, clamped). */
export function position(sizeBytes: number, firstBucket: number, endBucket: number): number {
  const bucket = Math.log2(Math.max(sizeBytes, 1) / 512);
  return Math.min(1, Math.max(0, (bucket - firstBucket) / (endBucket - firstBucket)));
}

/** The size at a position (0..1): the inverse of `position`. */
export function sizeAt(at: number, firstBucket: number, endBucket: number): number {
  return Math.round(512 * 2 ** (firstBucket + at * (endBucket - firstBucket)));
}
