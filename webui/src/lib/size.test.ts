// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBytes, parseRange, rangeLabel, targetLabel } from "./size";

const MIB = 2 ** 20;
const GIB = 2 ** 30;

test("a size requires a unit, except 0", () => {
  assert.equal(parseBytes("512MiB"), 512 * MIB);
  assert.equal(parseBytes(" 1.5 GiB "), 1.5 * GIB);
  assert.equal(parseBytes("4096B"), 4096);
  assert.equal(parseBytes("0"), 0);
  assert.equal(parseBytes("0 TiB"), 0);
  for (const wrong of ["", "10", "MiB", "-1MiB", "1,5GiB", "10MB", "10 mib", "1MiB 2", "1e3B", "."])
    assert.equal(parseBytes(wrong), null, wrong);
});

test("a size that JSON cannot carry exactly is none", () => {
  assert.equal(parseBytes("8191TiB"), 8191 * 2 ** 40);
  assert.equal(parseBytes("8192TiB"), null);
  assert.equal(parseBytes(`${"9".repeat(400)}B`), null);
});

test("a range ends after it begins, and an error names the field", () => {
  assert.deepEqual(parseRange("0", "10GiB"), { from_bytes: 0, to_bytes: 10 * GIB });
  assert.deepEqual(parseRange("1MiB", "1.5MiB"), { from_bytes: MIB, to_bytes: 1.5 * MIB });
  const wrong = (from: string, to: string): string => {
    const found = parseRange(from, to);
    assert.ok(typeof found === "string");
    return found;
  };
  assert.match(wrong("5", "10GiB"), /^From: enter a number and B, KiB/);
  assert.match(wrong("0", "10 GB"), /^To: enter a number and B, KiB/);
  assert.match(wrong("1GiB", "1024MiB"), /^To: enter a size beyond From/);
  assert.match(wrong("2GiB", "1GiB"), /^To: enter a size beyond From/);
});

test("a range is shown with units, and a path as it is", () => {
  assert.equal(rangeLabel({ from_bytes: MIB, to_bytes: 10 * GIB }), "1 MiB to 10 GiB");
  assert.equal(targetLabel(`0-${512 * MIB}`), "0 B to 512 MiB");
  for (const other of ["/srv/1-2", "12 saved ranges", "1-2-3"])
    assert.equal(targetLabel(other), other);
});
