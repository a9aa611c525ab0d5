// SPDX-License-Identifier: GPL-2.0-only
// Parses server-sent events, as defined by the HTML standard. Pure.

export interface ServerEvent {
  name: string;
  data: string;
  /** The last id in the stream so far. */
  id: string;
}

/** Takes text in pieces of any size; returns each event after its empty line. */
export class Parser {
  #rest = "";
  #name = "";
  #data: string[] = [];
  #id: string;

  constructor(lastId = "") {
    this.#id = lastId;
  }

  push(piece: string): ServerEvent[] {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line.replace(/\r$/, "")));
  }

  #line(line: string): ServerEvent[] {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    // A comment has no name. `retry` is ignored: live.ts has its own backoff.
    return [];
  }

  #end(): ServerEvent[] {
    const event = { name: this.#name || "message", data: this.#data.join("\n"), id: this.#id };
    const complete = this.#data.length > 0;
    this.#name = "";
    this.#data = [];
    return complete ? [event] : [];
  }
}
