// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { percentile, range, shade, shadeFrom, sum } from "./heat";

test("the range covers the used buckets and ignores missing times", () => {
  assert.deepEqual(range([null, [0, 0, 4, 1, 0], [0, 2, 0, 0, 0]]), {
    first: 1,
    end: 4,
    countMax: 4,
  });
  assert.equal(range([null, [0, 0]]), null);
});

test("shades grow from one request to the maximum", () => {
  assert.equal(shade(0, 1000, 6), 0);
  assert.equal(shade(1, 1000, 6), 1);
  assert.equal(shade(1000, 1000, 6), 6);
  assert.equal(shade(1, 1, 6), 6);
  let before = 0;
  for (let count = 1; count <= 1000; count += 1) {
    const now = shade(count, 1000, 6);
    assert.ok(now >= before);
    before = now;
  }
});

test("shadeFrom returns the smallest count of each shade", () => {
  const from = shadeFrom(1000, 6);
  assert.equal(from[0], 1);
  assert.equal(from.at(-1), 1000);
  from.forEach((count, index) => assert.ok(shade(count, 1000, 6) >= index + 1));
});

test("a percentile is the upper edge of its bucket, and unknown without requests", () => {
  const edges = [0.001, 0.002, 0.004];
  assert.equal(percentile([98, 1, 1], edges, 0.5), 0.001);
  assert.equal(percentile([98, 1, 1], edges, 0.99), 0.002);
  assert.equal(percentile([98, 1, 1], edges, 1), 0.004);
  assert.equal(percentile([0, 0, 0], edges, 0.5), null);
  assert.deepEqual(sum([null, [1, 2], [0, 1, 5]]), [1, 3, 5]);
});
