// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import * as gaps from "./gaps";
import * as runs from "./runs";

test("all bytes bypass at the lowest cutoff and none above the longest run", () => {
  const curve = [0, 10, 20, 30];
  assert.equal(runs.shareBeyond(curve, 512), 1);
  assert.equal(runs.shareBeyond(curve, 512 * 16), 0);
});

test("the share is linear inside a bucket and never grows with the cutoff", () => {
  // One bucket: runs of 4 to 8 KiB; a cutoff of 6 KiB is in its middle.
  assert.equal(runs.shareBeyond([0, 0, 0, 100], 6144), 0.5);
  const curve = [5, 0, 7, 100, 3, 0, 40];
  let before = 1;
  for (let cutoff = 512; cutoff < 2 ** 17; cutoff += 512) {
    const share = runs.shareBeyond(curve, cutoff) ?? NaN;
    assert.ok(share <= before + 1e-12, `${cutoff}: ${share} after ${before}`);
    before = share;
  }
});

test("without bytes the share is unknown", () => {
  assert.equal(runs.shareBeyond([], 4096), null);
  assert.equal(runs.shareBeyond([0, 0], 4096), null);
});

test("position and sizeAt are inverse", () => {
  for (const size of [4096, 65536, 1 << 22]) {
    assert.equal(runs.sizeAt(runs.position(size, 0, 22), 0, 22), size);
  }
  assert.equal(runs.position(1, 3, 9), 0);
  assert.equal(runs.position(1e12, 3, 9), 1);
});

test("occupied returns the range of used buckets", () => {
  assert.deepEqual(runs.occupied([0, 0, 3, 0, 1, 0]), [2, 5]);
  assert.equal(runs.occupied([0, 0]), null);
  assert.deepEqual(runs.occupied([0.001, 3], 0.01), [1, 2]);
  assert.deepEqual(runs.addRuns([1, 2], [1, 1, 1]), [2, 3, 1]);
});

test("reaching counts the gaps that reach the wait", () => {
  // Ten gaps of 1.024 to 2.048 ms, two of 1.05 to 2.1 s.
  const counts: number[] = [];
  counts[10] = 10;
  counts[20] = 2;
  const whole = Array.from(counts, (count: number | undefined) => count ?? 0);
  assert.equal(gaps.reaching(whole, 0.01), 2);
  assert.equal(gaps.shareReaching(whole, 1e-7), 1);
  const middle = gaps.reaching(whole, 1.5 * gaps.bucketLowSeconds(10));
  assert.ok(Math.abs(middle - 7) < 1e-9);
  assert.equal(gaps.shareReaching([], 1), null);
});
