// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { lanes, marks, type Write } from "./timeline";

function write(id: number, at: number, value: string, more: Partial<Write> = {}): Write {
  const base = { knob: "writeback_percent", old: "10", strategy: "idle_destage", read_back: null };
  return { id, at, new: value, outcome: "changed", ...base, ...more };
}

test("a lane starts with the value before the first write", () => {
  const found = lanes([write(2, 60, "40"), write(1, 20, "0")], 0, 100);
  assert.deepEqual(found, [
    {
      knob: "writeback_percent",
      bars: [
        { from: 0, until: 20, value: "10", strategy: null },
        { from: 20, until: 60, value: "0", strategy: "idle_destage" },
        { from: 60, until: 100, value: "40", strategy: "idle_destage" },
      ],
    },
  ]);
});

test("refused writes have no bar", () => {
  assert.deepEqual(lanes([write(1, 20, "0", { outcome: "refused" })], 0, 100), []);
});

test("a value that somebody else wrote has a bar of its own", () => {
  const found = lanes(
    [
      write(1, 20, "0"),
      write(2, 60, "17", { old: null, outcome: "manual", read_back: "17", strategy: "manual" }),
    ],
    0,
    100,
  );
  assert.deepEqual(found[0]?.bars.slice(1), [
    { from: 20, until: 60, value: "0", strategy: "idle_destage" },
    { from: 60, until: 100, value: "17", strategy: "manual" },
  ]);
});

test("what ebbgate did not put back shows the value that it found", () => {
  const more = { outcome: "manual", read_back: "17", strategy: "restore" };
  const found = lanes([write(1, 20, "0"), write(2, 60, "10", more)], 0, 100);
  const last = { from: 60, until: 100, value: "17", strategy: "manual" };
  assert.deepEqual(found[0]?.bars.at(-1), last);
});

test("a write that was left out because of somebody else's value has no bar", () => {
  const found = lanes([write(1, 20, "0"), write(2, 60, "40", { outcome: "manual" })], 0, 100);
  const last = { from: 20, until: 100, value: "0", strategy: "idle_destage" };
  assert.deepEqual(found[0]?.bars.at(-1), last);
});

test("a write before the period starts its bar at the edge", () => {
  const found = lanes([write(1, -50, "0"), write(2, -10, "40")], 0, 100);
  assert.deepEqual(found[0]?.bars, [
    { from: 0, until: 100, value: "40", strategy: "idle_destage" },
  ]);
});

test("writing the same value again extends the bar", () => {
  const found = lanes([write(1, 20, "0"), write(2, 60, "0")], 0, 100);
  assert.deepEqual(
    found[0]?.bars.map((bar) => [bar.from, bar.until]),
    [
      [0, 20],
      [20, 100],
    ],
  );
});

test("marks that are too close are merged", () => {
  const found = marks([{ at: 10 }, { at: 11 }, { at: 50 }, { at: 200 }], 0, 100, 0.05);
  assert.deepEqual(
    found.map((mark) => [mark.at, mark.items.length]),
    [
      [0.1, 2],
      [0.5, 1],
    ],
  );
});
