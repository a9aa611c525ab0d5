// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kept, type Storing } from "./kept";

function used(kept: Kept): (string | null)[] {
  const found = [kept.get("a")];
  kept.set("a", "1");
  found.push(kept.get("a"));
  kept.remove("a");
  return [...found, kept.get("a")];
}

function working(): Storing & { map: Map<string, string> } {
  const map = new Map<string, string>();
  return {
    map,
    getItem: (key) => map.get(key) ?? null,
    setItem: (key, value) => void map.set(key, value),
    removeItem: (key) => void map.delete(key),
  };
}

test("a text is kept in the storage", () => {
  const storage = working();
  assert.deepEqual(used(new Kept(() => storage)), [null, "1", null]);
  new Kept(() => storage).set("a", "2");
  assert.equal(new Kept(() => storage).get("a"), "2");
});

test("where the storage is blocked or full, a text is kept all the same", () => {
  const refuse = (): never => {
    throw new Error("denied");
  };
  assert.deepEqual(used(new Kept(refuse)), [null, "1", null]);
  const full = { ...working(), setItem: refuse };
  assert.deepEqual(used(new Kept(() => full)), [null, "1", null]);
});
