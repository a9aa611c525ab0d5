// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { pinFigures, pinTotals, stateLabel } from "./pins";

const GIB = 2 ** 30;
const HOT = { size_bytes: GIB, cache_ratio: 0.2, hit_ratio: 0.998, who: "admin" };
const NEW = { size_bytes: null, cache_ratio: null, hit_ratio: null, who: "" };

test("the figures of a pin omit what is unknown", () => {
  assert.equal(pinFigures(HOT), "1 GiB, 20% of the cache · 100% of touches hit · by admin");
  assert.equal(
    pinFigures({ ...HOT, cache_ratio: null, hit_ratio: 0 }),
    "1 GiB · 0% of touches hit · by admin",
  );
  assert.equal(pinFigures({ ...NEW, who: "admin" }), "by admin");
  assert.equal(pinFigures(NEW), "");
});

test("totals are those of all pins, and unknown where one is", () => {
  assert.equal(pinTotals([HOT]), "1 file, 1 GiB, 20% of the cache");
  assert.equal(pinTotals([HOT, HOT]), "2 files, 2 GiB, 40% of the cache");
  assert.equal(pinTotals([HOT, { ...HOT, cache_ratio: null }]), "2 files, 2 GiB");
  assert.equal(pinTotals([HOT, NEW]), "2 files");
});

test("a state is shown in words", () => {
  assert.equal(stateLabel("too_large"), "too large");
  assert.equal(stateLabel("hot"), "hot");
  assert.equal(stateLabel("elsewhere"), "elsewhere");
});
