// SPDX-License-Identifier: GPL-2.0-only
// Server-sent events out of the text of a stream, as the HTML standard has them. Pure.

export interface Told {
  name: string;
  data: string;
  /** The last id that the stream named, of this event or before. */
  id: string;
}

/** Takes the text in pieces of any size, and gives each event once its empty line has come. */
export class Parser {
  #rest = "";
  #name = "";
  #data: string[] = [];
  #id: string;

  constructor(lastId = "") {
    this.#id = lastId;
  }

  push(piece: string): Told[] {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line.replace(/\r$/, "")));
  }

  #line(line: string): Told[] {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    // A comment has no name; `retry` is not for us, who count attempts.
    return [];
  }

  #end(): Told[] {
    const told = { name: this.#name || "message", data: this.#data.join("\n"), id: this.#id };
    const any = this.#data.length > 0;
    this.#name = "";
    this.#data = [];
    return any ? [told] : [];
  }
}
