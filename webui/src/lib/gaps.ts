// SPDX-License-Identifier: GPL-2.0-only
// The histogram of idle periods, and the idle wait learned from it. Pure.
// The same as ebbgate/signals/gaps.py: bucket i holds gaps of [2^i, 2^(i+1)) microseconds.

/** A decayed count below this is treated as zero. */
export const TRACE = 0.01;

export function bucketLowSeconds(bucket: number): number {
  return 2 ** bucket * 1e-6;
}

/** How many of the gaps lasted at least `waitSeconds`; linear inside a bucket. */
export function reaching(counts: readonly number[], waitSeconds: number): number {
  let total = 0;
  counts.forEach((count, bucket) => {
    const low = bucketLowSeconds(bucket);
    if (waitSeconds <= low) total += count;
    else if (waitSeconds < 2 * low) total += (count * (2 * low - waitSeconds)) / low;
  });
  return total;
}

/** The share (0..1) of gaps that last at least `waitSeconds`; null without gaps. */
export function shareReaching(counts: readonly number[], waitSeconds: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return total > TRACE ? reaching(counts, waitSeconds) / total : null;
}

/** Position of a duration between two buckets on a logarithmic axis (0..1, clamped). */
export function position(seconds: number, firstBucket: number, endBucket: number): number {
  const bucket = Math.log2(Math.max(seconds, 1e-9) / 1e-6);
  return Math.min(1, Math.max(0, (bucket - firstBucket) / (endBucket - firstBucket)));
}
