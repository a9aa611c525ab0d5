// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "../api/types";
import { matches } from "./decisions";

const decision = {
  volume: "bcache0",
  gate_strategy: "idle_destage",
  cutoff_strategy: null,
  actions: [
    { knob: "writeback_rate", outcome: "changed", strategy: "idle_destage" },
    { knob: "sequential_cutoff", outcome: "failed", strategy: "stream_bypass" },
  ],
} as unknown as Decision;

test("a filter shows what all of its parts match, each write as a whole", () => {
  const shown: readonly Record<string, string>[] = [
    {},
    { volume: "bcache0" },
    { since: "3600" },
    { strategy: "idle_destage" },
    { strategy: "stream_bypass" },
    { knob: "writeback_rate" },
    { outcome: "failed" },
    { knob: "sequential_cutoff", outcome: "failed", strategy: "idle_destage" },
  ];
  const hidden: readonly Record<string, string>[] = [
    { volume: "bcache1" },
    { strategy: "promote_hot" },
    { knob: "writeback_percent" },
    { outcome: "refused" },
    { knob: "writeback_rate", outcome: "failed" },
    { volume: "bcache1", outcome: "failed" },
  ];
  for (const query of shown) assert.ok(matches(decision, query), JSON.stringify(query));
  for (const query of hidden) assert.ok(!matches(decision, query), JSON.stringify(query));
  const unwritten: Decision = { ...decision, actions: [] };
  assert.ok(matches(unwritten, { strategy: "idle_destage" }));
  assert.ok(!matches(unwritten, { outcome: "failed" }));
});
