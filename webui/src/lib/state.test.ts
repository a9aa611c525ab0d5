// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { Atom } from "./atom";
import { backoffMs, merged, silent } from "./merge";
import { format, parse, rangeOf } from "./route";

test("merged keeps each row once, newest first", () => {
  const rows = [{ id: 5 }, { id: 3 }];
  assert.deepEqual(merged(rows, [{ id: 4 }, { id: 5 }, { id: 6 }], 10), [
    { id: 6 },
    { id: 5 },
    { id: 4 },
    { id: 3 },
  ]);
  assert.deepEqual(merged(rows, [{ id: 9 }], 2), [{ id: 9 }, { id: 5 }]);
});

test("merged keeps the later version of a row", () => {
  const pending = { id: 1, ok: null as boolean | null };
  assert.deepEqual(merged([pending], [{ id: 1, ok: true }], 10), [{ id: 1, ok: true }]);
});

test("backoff doubles up to its limit; a long silence counts as dead", () => {
  assert.deepEqual(
    [0, 1, 2, 9].map((n) => backoffMs(n)),
    [500, 1000, 2000, 10_000],
  );
  assert.ok(silent(100_000, 10_000));
  assert.ok(!silent(20_000, 10_000));
});

test("format and parse are inverse for any volume name", () => {
  for (const name of ["bcache0", "vg/data", "a?b#c%d", "ü "]) {
    const route = parse(format("volume", name, { range: "24h", q: "a&b" }));
    assert.deepEqual(route, { page: "volume", name, query: { range: "24h", q: "a&b" } });
  }
  assert.equal(format("decisions", "", { volume: "", knob: "x" }), "#/decisions?knob=x");
});

test("an unknown address is the overview", () => {
  for (const hash of ["", "#", "#/", "#/nothing/at/all", "#main"]) {
    assert.equal(parse(hash).page, "overview");
  }
  assert.equal(parse("#/volume/%E0%A4").name, "%E0%A4");
  assert.equal(rangeOf("1y"), "5m");
});

test("an atom calls its listeners on changes only, and none after stop", () => {
  const seen: number[] = [];
  const atom = new Atom(1);
  const stop = atom.listen((value) => seen.push(value));
  atom.set(1);
  atom.set(2);
  stop();
  atom.set(3);
  assert.deepEqual(seen, [1, 2]);
});
