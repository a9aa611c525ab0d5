// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "./format";

test("an unknown value is a dash, not zero", () => {
  for (const write of [format.bytes, format.rate, format.seconds, format.ratio, format.count]) {
    assert.equal(write(null), "–");
    assert.equal(write(undefined), "–");
    assert.notEqual(write(0), "–");
  }
});

test("bytes have at most three digits and a binary unit", () => {
  const cases: [number, string][] = [
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1 KiB"],
    [1536, "1.5 KiB"],
    [82_103_500, "78.3 MiB"],
    [2 ** 30 * 1.5, "1.5 GiB"],
    [2 ** 60, "1024 PiB"],
    [-2048, "-2 KiB"],
  ];
  for (const [value, text] of cases) assert.equal(format.bytes(value), text);
});

test("durations use the same units as the command line", () => {
  const cases: [number, string][] = [
    [0, "0 s"],
    [2e-7, "200 ns"],
    [4.1e-5, "41 µs"],
    [0.41, "410 ms"],
    [2.5, "2.5 s"],
    [119, "119 s"],
    [240, "4 min"],
    [7200, "2 h"],
    [259200, "3 d"],
    [Infinity, "never"],
  ];
  for (const [value, text] of cases) assert.equal(format.seconds(value), text);
  assert.equal(format.nanoseconds(119e6), "119 ms");
});

test("a knob value without a unit gets one", () => {
  assert.equal(format.knobValue("sequential_cutoff", "4194304"), "4 MiB");
  assert.equal(format.knobValue("writeback_rate", "2048"), "1 MiB/s");
  assert.equal(format.knobValue("writeback_rate", "2147483647"), "unlimited");
  assert.equal(format.knobValue("dm:vg-data/migration_threshold", "2048"), "1 MiB");
  assert.equal(format.knobValue("migration_threshold", "0"), "0 B");
  assert.equal(format.knobValue("writeback_percent", "40"), "40");
  assert.equal(format.knobValue("writeback_percent", null), "–");
  assert.equal(format.knobValue("cache_mode", "writeback"), "writeback");
});

test("ratios, counts, ages and plurals are formatted", () => {
  assert.equal(format.ratio(0.034), "3.4%");
  assert.equal(format.ratio(0.34), "34%");
  assert.equal(format.ratio(0), "0%");
  assert.equal(format.count(12345), "12,345");
  assert.equal(format.ago(0.4), "just now");
  assert.equal(format.ago(12.7), "12 s ago");
  assert.equal(format.plural(1, "knob"), "1 knob");
  assert.equal(format.plural(2, "policy", "policies"), "2 policies");
});
