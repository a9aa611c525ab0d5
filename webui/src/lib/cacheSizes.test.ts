// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MissRatio } from "../api/types";
import { hitRatio, path } from "./cacheSizes";

function curve(miss_ratios: number[]): MissRatio {
  const sizes_bytes = miss_ratios.map((_, i) => 2 ** (20 + i));
  return { observed_ns: 1e9, sampled_reads: 300, reads_min: 256, sizes_bytes, miss_ratios };
}

test("the hit ratio of half and twice the size is read from the curve", () => {
  const found = curve([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25]);
  assert.equal(hitRatio(found, 0), 0.4);
  assert.equal(hitRatio(found, 1), 0.5);
  assert.ok(Math.abs((hitRatio(found, -1) ?? 0) - 0.3) < 1e-9);
  assert.equal(hitRatio(found, 4), 0.75);
});

test("without ratios the hit ratio is unknown", () => {
  assert.equal(hitRatio(curve([]), 0), null);
});

test("the path runs through the whole box, hits on top", () => {
  assert.equal(path(curve([1, 0.5, 0]), 600, 150), "M0.0 150.0L300.0 75.0L600.0 0.0");
});
