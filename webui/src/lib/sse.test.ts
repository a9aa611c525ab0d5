// SPDX-License-Identifier: GPL-2.0-only
import assert from "node:assert/strict";
import { test } from "node:test";
import { Parser } from "./sse";

const STREAM = `retry: 2000

id: 7
event: volumes
data: {"a":1}

: still there

event: decision
data: one
data:  two

data: cut`;

const EVENTS = [
  { name: "volumes", data: '{"a":1}', id: "7" },
  { name: "decision", data: "one\n two", id: "7" },
];

test("events are parsed from pieces of any size", () => {
  for (const size of [1, 2, 7, STREAM.length]) {
    const parser = new Parser();
    const found = [];
    for (let at = 0; at < STREAM.length; at += size)
      found.push(...parser.push(STREAM.slice(at, at + size)));
    assert.deepEqual(found, EVENTS);
  }
});

test("lines may end with CRLF", () => {
  assert.deepEqual(new Parser().push(STREAM.replaceAll("\n", "\r\n")), EVENTS);
});

test("an id is kept until the next one, also in a new stream", () => {
  const parser = new Parser("5");
  assert.equal(parser.push("data: x\n\n")[0]?.id, "5");
  assert.equal(parser.push("id: 6\ndata: x\n\n")[0]?.id, "6");
  assert.equal(parser.push("id: 7\n\ndata: x\n\n")[0]?.id, "7");
});
