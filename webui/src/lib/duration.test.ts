// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseNs, untilClockNs } from "./duration";
import { choiceOf, isDark, next } from "./theme";

test("a duration requires a unit", () => {
  assert.equal(parseNs("10min"), 600e9);
  assert.equal(parseNs(" 1.5 h "), 5400e9);
  for (const wrong of ["", "10", "min", "-1s", "0s", "10 weeks"])
    assert.equal(parseNs(wrong), null);
});

test("a time of day means its next occurrence", () => {
  const now = new Date(2026, 10, 21, 23, 30, 0);
  assert.equal(untilClockNs("23:45", now), 15 * 60e9);
  assert.equal(untilClockNs("06:00", now), 6.5 * 3600e9);
  assert.equal(untilClockNs("23:30", now), 24 * 3600e9);
  assert.equal(untilClockNs("24:00", now), null);
});

test("the theme switch first inverts the visible theme and ends at the system's", () => {
  for (const dark of [true, false]) {
    const first = next("auto", dark);
    assert.notEqual(isDark(first, dark), dark);
    const second = next(first, dark);
    assert.equal(isDark(second, dark), dark);
    assert.equal(next(second, dark), "auto");
  }
  assert.equal(choiceOf("nonsense"), "auto");
});
