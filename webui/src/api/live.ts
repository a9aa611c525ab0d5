// SPDX-License-Identifier: GPL-2.0-only
// The event stream: what happens now, and after a sleep or a break what was missed meanwhile.
// By fetch and not by a browser's EventSource: that one can send no token, gives up for good on an
// error status, does not tell of comments, and forgets where it was when it is made anew.
import { backoffMs, silent } from "../lib/merge";
import { Parser, type Told } from "../lib/sse";
import { token } from "./client";
import type { Action, Decision, Health, Intent, Volumes } from "./types";

/** `locked`: this server shows nothing without the token. */
export type Connection = "open" | "lost" | "locked";

export interface Handlers {
  volumes: (data: Volumes) => void;
  decision: (data: Decision) => void;
  action: (data: Action) => void;
  intent: (data: Intent) => void;
  health: (data: Health) => void;
  /** More was missed than the server would repeat: lists have to be read anew. */
  reset: () => void;
  state: (state: Connection) => void;
}

const EVENTS = new Set<string>(["volumes", "decision", "action", "intent", "health", "reset"]);
const LOOK_MS = 5_000;
const UNAUTHORIZED = 401;

export class Live {
  #stream: AbortController | null = null;
  #heardMs = Date.now();
  #lastId = "";
  #attempt = 0;
  #retry: number | undefined;

  constructor(private readonly handlers: Handlers) {
    setInterval(() => this.#look(), LOOK_MS);
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#look();
    });
    for (const event of ["online", "offline", "ebbgate-token"])
      window.addEventListener(event, () => this.reconnect());
    window.addEventListener("pagehide", () => this.#close());
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) this.reconnect();
    });
    this.reconnect();
  }

  reconnect(): void {
    this.#close();
    const stream = new AbortController();
    this.#stream = stream;
    this.#heardMs = Date.now();
    void this.#follow(stream);
  }

  async #follow(stream: AbortController): Promise<void> {
    let state: Connection = "lost";
    try {
      const response = await fetch("/api/v1/events", {
        headers: this.#headers(),
        credentials: "omit",
        cache: "no-store",
        signal: stream.signal,
      });
      if (response.status === UNAUTHORIZED) state = "locked";
      if (response.ok && response.body) await this.#read(response.body);
    } catch {
      // Said below, whatever it was.
    }
    if (stream === this.#stream) this.#broken(state);
  }

  #headers(): Record<string, string> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (token.get() !== "") headers["Authorization"] = `Bearer ${token.get()}`;
    if (this.#lastId !== "") headers["Last-Event-ID"] = this.#lastId;
    return headers;
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    this.#attempt = 0;
    this.handlers.state("open");
    const parser = new Parser(this.#lastId);
    const decoder = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#heardMs = Date.now();
      for (const told of parser.push(decoder.decode(value, { stream: true }))) this.#take(told);
    }
  }

  #take({ name, data, id }: Told): void {
    this.#lastId = id;
    if (!EVENTS.has(name)) return;
    (this.handlers[name as "volumes"] as (data: unknown) => void)(JSON.parse(data));
  }

  #broken(state: Connection): void {
    this.#stream = null;
    this.handlers.state(state);
    this.#retry = window.setTimeout(() => this.reconnect(), backoffMs(this.#attempt));
    this.#attempt += 1;
  }

  /** After a sleep a connection may be dead and look alive. */
  #look(): void {
    if (this.#stream !== null && silent(Date.now(), this.#heardMs)) this.reconnect();
  }

  #close(): void {
    window.clearTimeout(this.#retry);
    const stream = this.#stream;
    this.#stream = null;
    stream?.abort();
  }
}
