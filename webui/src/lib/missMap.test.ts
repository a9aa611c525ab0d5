// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Heat } from "../api/types";
import {
  cellAt,
  cellByKey,
  columnsOf,
  halfShare,
  hottest,
  partAt,
  perMinute,
  placeText,
} from "./missMap";

const HEAT: Heat = {
  why: "",
  observed_ns: 120e9,
  misses: 17,
  unlisted: 2,
  bin_bytes: 100,
  bins: [1, 0, 9, 5],
  moved: [0, 0, 3, 0],
  pending: [],
  held_out: [0, 0, 0, 1],
  chunks: [],
  groups: [],
};

test("a part has its place, and nothing was moved where no list says so", () => {
  assert.deepEqual(partAt(HEAT, 2), {
    index: 2,
    from: 200,
    end: 300,
    misses: 9,
    moved: 3,
    pending: 0,
    heldOut: 0,
  });
});

test("places of small and of large parts are exact", () => {
  const place = (mib: number, index: number): string =>
    placeText(partAt({ ...HEAT, bin_bytes: mib * 2 ** 20 }, index));
  assert.equal(place(32, 89), "2,848 to 2,880 MiB");
  assert.equal(place(4096, 3), "12 to 16 GiB");
});

test("the hottest parts come first, and parts without misses are left out", () => {
  assert.deepEqual(
    hottest(HEAT, 9).map((part) => part.index),
    [2, 3, 0],
  );
  assert.equal(hottest(HEAT, 2).length, 2);
});

test("half of the misses are in the smallest share of the volume", () => {
  assert.equal(halfShare([1, 0, 9, 5]), 0.25);
  assert.equal(halfShare([2, 2, 2, 2]), 0.5);
  assert.equal(halfShare([0, 0]), null);
  assert.equal(halfShare([]), null);
});

test("misses per minute need an observed time", () => {
  assert.equal(perMinute(HEAT, 9), 4.5);
  assert.equal(perMinute({ ...HEAT, observed_ns: 0 }, 9), null);
});

test("keys lead to the next cell and row, and stay inside", () => {
  const by = (key: string, from: number): number | null => cellByKey(key, from, 100, 32);
  assert.equal(by("ArrowRight", 5), 6);
  assert.equal(by("ArrowLeft", 0), 0);
  assert.equal(by("ArrowDown", 5), 37);
  assert.equal(by("ArrowDown", 98), 99);
  assert.equal(by("ArrowUp", 5), 0);
  assert.equal(by("Home", 50), 0);
  assert.equal(by("End", 50), 99);
  assert.equal(by("Tab", 50), null);
});

test("a point is in a cell, or beside all of them", () => {
  assert.equal(cellAt(0, 0, 100, 32), 0);
  assert.equal(cellAt(0.99, 0.3, 100, 32), 63);
  assert.equal(cellAt(0.5, 0.99, 100, 32), null);
  assert.equal(cellAt(1, 0, 100, 32), null);
  assert.equal(cellAt(-0.1, 0, 100, 32), null);
});

test("narrow boxes have fewer cells in a row", () => {
  assert.equal(columnsOf(310), 32);
  assert.equal(columnsOf(1200), 64);
});
