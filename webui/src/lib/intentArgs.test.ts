// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { argsText } from "./intentArgs";

test("durations, sizes and rates have units in place of long numbers", () => {
  assert.equal(argsText({ on: true, for_ns: 28_800e9 }), "on true, for 8 h");
  assert.equal(
    argsText({ from_bytes: 0, to_bytes: 10 * 2 ** 30, bandwidth_bytes_per_s: 50 * 2 ** 20 }),
    "from 0 B, to 10 GiB, bandwidth 50 MiB/s",
  );
});

test("other arguments stay as they are, and the text of a policy is left out", () => {
  assert.equal(
    argsText({ knob: "sequential_cutoff", value: "4MiB" }),
    "knob sequential_cutoff, value 4MiB",
  );
  assert.equal(argsText({ name: "nas", text: "version: 1" }), "name nas");
  assert.equal(argsText({ for_ns: "1h" }), "for_ns 1h");
});
