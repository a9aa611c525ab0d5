// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, gauge, spread } from "./gauge";

const LEVELS = { dirtyBytes: 300, cacheBytes: 1000, floorBytes: 100, cutoffBytes: 400 };

test("the scale is zoomed to the cutoff", () => {
  const found = gauge(LEVELS);
  assert.deepEqual(found, {
    scaleBytes: 500,
    level: 0.6,
    floor: 0.2,
    cutoff: 0.8,
    zoomed: true,
    alarm: "none",
  });
});

test("the scale is at most the cache size", () => {
  const found = gauge({ ...LEVELS, cutoffBytes: 950 });
  assert.equal(found.scaleBytes, 1000);
  assert.equal(found.zoomed, false);
});

test("the alarm is set near and over the cutoff", () => {
  assert.equal(gauge({ ...LEVELS, dirtyBytes: 345 }).alarm, "near");
  const over = gauge({ ...LEVELS, dirtyBytes: 700 });
  assert.equal(over.alarm, "over");
  assert.equal(over.level, 1);
});

test("unknown levels are not drawn", () => {
  const none = { dirtyBytes: null, cacheBytes: null, floorBytes: null, cutoffBytes: null };
  const found = gauge(none);
  assert.equal(found.level, null);
  assert.equal(found.scaleBytes, null);
  assert.equal(describe(none), "Dirty data: unknown");
  assert.match(describe({ ...LEVELS, cutoffBytes: null }), /is unknown$/);
});

test("an empty cache has level zero", () => {
  assert.equal(gauge({ ...LEVELS, dirtyBytes: 0 }).level, 0);
});

test("spread moves labels apart, keeps their order and keeps them inside", () => {
  const found = spread([0.5, 0.51, 0.99], 0.1);
  assert.ok(Math.abs((found[1] ?? 0) - (found[0] ?? 0)) >= 0.1 - 1e-9);
  assert.ok(found.every((at) => at >= 0 && at <= 1));
  assert.deepEqual(spread([], 0.1), []);
  assert.deepEqual(spread([0.9, 0.1], 0.2), [0.9, 0.1]);
});
