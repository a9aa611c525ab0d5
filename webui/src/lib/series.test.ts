// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { byteTicks, column, negated, recorded, summary, thinned, total } from "./series";

test("negated keeps gaps", () => {
  assert.deepEqual(negated([1, null, 3]), [-1, null, -3]);
});

test("rows are recorded up to the last one with any value", () => {
  assert.equal(
    recorded([
      [1, null, null, null],
      [null, null, 0, null],
    ]),
    3,
  );
  assert.equal(recorded([[null, null], []]), 0);
  assert.equal(recorded([]), 0);
});

test("a summary counts known values only", () => {
  assert.deepEqual(summary([1, null, 3, null]), {
    last: null,
    min: 1,
    max: 3,
    mean: 2,
    known: 0.5,
  });
  assert.equal(summary([null]).max, null);
  assert.equal(total([1, null, 2]), 3);
  assert.equal(total([null]), null);
  assert.equal(total(undefined), null);
});

test("a missing column is null throughout", () => {
  assert.deepEqual(column({ a: [1, 2] }, "a", 2), [1, 2]);
  assert.deepEqual(column({}, "a", 2), [null, null]);
});

test("thinned keeps the first and the last row", () => {
  assert.deepEqual(thinned(3, 10), [0, 1, 2]);
  const rows = thinned(600, 30);
  assert.equal(rows.length, 30);
  assert.equal(rows[0], 0);
  assert.equal(rows.at(-1), 599);
});

test("byte ticks are round in their unit", () => {
  assert.deepEqual(byteTicks(0), [0]);
  const mib = 1024 ** 2;
  assert.deepEqual(
    byteTicks(100 * mib),
    [0, 50, 100].map((n) => n * mib),
  );
  for (const max of [3, 700, 5000, 3e7, 9e9, 4e13]) {
    const ticks = byteTicks(max);
    assert.ok(ticks.length >= 2 && ticks.length <= 6, `${max}: ${ticks.join()}`);
  }
});
