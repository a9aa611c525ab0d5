// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
// The shipped schema, so that a change of the policy language shows up here.
import shipped from "../../../policies/schema.json";
import { complete, type Schema } from "./complete";
import { placeAt } from "./yamlplace";

const schema = shipped as unknown as Schema;

/** Completes at the `|` of a text. */
function at(text: string): { labels: string[]; inserted: string[]; about: string } {
  const offset = text.indexOf("|");
  const whole = text.slice(0, offset) + text.slice(offset + 1);
  const found = complete(whole, offset, schema);
  return {
    labels: found.items.map((item) => item.label),
    inserted: found.items.map((item) => whole.slice(0, found.from) + item.insert),
    about: found.about,
  };
}

test("the top level offers every key of a policy", () => {
  const { labels } = at("version: 1\n|");
  for (const key of ["name", "match", "limits", "rules", "schedule"])
    assert.ok(labels.includes(key));
});

test("typed text narrows the choice and is replaced", () => {
  assert.deepEqual(at("obj|").inserted, ["objectives: "]);
});

test("a block offers its own keys", () => {
  assert.ok(at("objectives:\n  |").labels.includes("read_latency_p99"));
  assert.ok(!at("objectives:\n  read_latency_p99: 3ms\n|").labels.includes("write_latency_p99"));
});

test("braces offer the keys of their block", () => {
  assert.deepEqual(at("limits: {sequential_cutoff: {|").labels, ["min", "max"]);
  assert.ok(at("match: {volume: x, ki|").labels.includes("kind"));
});

test("values are offered after a colon", () => {
  assert.ok(at("match: {kind: |").labels.includes("dm-cache"));
  assert.ok(at("match:\n  kind: bc|").labels.includes("bcache"));
});

test("a list entry may be a value or start with a key", () => {
  assert.ok(at("strategies:\n  - |").inserted.some((text) => text.endsWith("- idle_destage")));
  assert.ok(at("strategies:\n  - idle_destage: {wa|").labels.includes("wait"));
});

test("nested rules and conditions are completed", () => {
  const rule = "rules:\n  - name: a\n    why: b\n";
  assert.ok(at(`${rule}    |`).labels.includes("cooldown"));
  assert.ok(at(`${rule}    when: {any: [{all: [{time_to|`).labels.includes("time_to_full"));
  assert.ok(
    at(`${rule}    when:\n      any:\n        - all: [{dirty|`).labels.includes("dirty_ratio"),
  );
  assert.ok(at(`${rule}    set: {destage_rate: |`).labels.includes("max"));
});

test("the description of the current place is returned", () => {
  assert.match(at("objectives:\n  dirty_age_max: |").about, /dirty data/i);
});

test("comments offer nothing, and invalid YAML does not fail", () => {
  assert.deepEqual(at("# na|").labels, []);
  for (const text of ["}]|", "a: b: c: |", "- - - |", "\t|", '"|', "|"]) at(text);
  assert.deepEqual(placeAt("rules:\n  - name: x\n    set: {", 28)?.path, ["rules", "[]", "set"]);
});
