// SPDX-License-Identifier: GPL-2.0-only
// The event stream; after a break the server repeats what was missed.
// Uses fetch, not EventSource, which cannot send a token, stops for good on an error status, hides
// comments, and loses its position when it is recreated.
import { backoffMs, silent } from "../lib/merge";
import { Parser, type ServerEvent } from "../lib/sse";
import { address, token } from "./client";
import type { Action, Decision, Health, Intent, Volumes } from "./types";

/** `locked`: this server requires the token for reading. */
export type Connection = "open" | "lost" | "locked";

export interface Handlers {
  volumes: (data: Volumes) => void;
  decision: (data: Decision) => void;
  action: (data: Action) => void;
  intent: (data: Intent) => void;
  health: (data: Health) => void;
  /** More was missed than the server repeats: lists have to be read again. */
  reset: () => void;
  state: (state: Connection) => void;
}

const EVENTS = new Set<string>(["volumes", "decision", "action", "intent", "health", "reset"]);
const CHECK_MS = 5_000;
// A browser opens six connections to a server, for all tabs: one that nobody looks at keeps none.
const HIDDEN_MS = 30_000;
const UNAUTHORIZED = 401;

export class Live {
  #stream: AbortController | null = null;
  #receivedMs = Date.now();
  #lastId = "";
  #attempt = 0;
  #retry: number | undefined;
  #hidden: number | undefined;

  constructor(private readonly handlers: Handlers) {
    setInterval(() => this.#checkAlive(), CHECK_MS);
    document.addEventListener("visibilitychange", () => this.#shown());
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
    this.#receivedMs = Date.now();
    this.#closeIfHidden();
    void this.#follow(stream);
  }

  async #follow(stream: AbortController): Promise<void> {
    let state: Connection = "lost";
    try {
      const response = await fetch(address("events"), {
        headers: this.#headers(),
        credentials: "omit",
        cache: "no-store",
        signal: stream.signal,
      });
      if (response.status === UNAUTHORIZED) state = "locked";
      if (response.ok && response.body) await this.#read(response.body);
    } catch {
      // Reported below, whatever the reason.
    }
    if (stream === this.#stream) this.#disconnected(state);
  }

  #headers(): Record<string, string> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (token.get() !== "") headers["Authorization"] = `Bearer ${token.get()}`;
    if (this.#lastId !== "") headers["Last-Event-ID"] = this.#lastId;
    return headers;
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    this.handlers.state("open");
    const parser = new Parser(this.#lastId);
    const decoder = new TextDecoder();
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#receivedMs = Date.now();
      for (const event of parser.push(decoder.decode(value, { stream: true }))) this.#handle(event);
      this.#attempt = 0;
    }
  }

  #handle({ name, data, id }: ServerEvent): void {
    this.#lastId = id;
    if (!EVENTS.has(name)) return;
    (this.handlers[name as "volumes"] as (data: unknown) => void)(JSON.parse(data));
  }

  #disconnected(state: Connection): void {
    this.#stream = null;
    this.handlers.state(state);
    if (state === "locked" && token.get() !== "") {
      // The server has another one by now. The event begins a stream without it.
      token.forget();
      window.dispatchEvent(new Event("ebbgate-token"));
      return;
    }
    this.#retry = window.setTimeout(() => this.reconnect(), backoffMs(this.#attempt));
    this.#attempt += 1;
  }

  #shown(): void {
    window.clearTimeout(this.#hidden);
    this.#hidden = undefined;
    if (document.visibilityState === "hidden") this.#closeIfHidden();
    else if (this.#stream === null) this.reconnect();
    else this.#checkAlive();
  }

  /** Also for a tab that was opened in the background, or that the network came back to. */
  #closeIfHidden(): void {
    if (document.visibilityState !== "hidden" || this.#hidden !== undefined) return;
    this.#hidden = window.setTimeout(() => {
      this.#hidden = undefined;
      this.#close();
    }, HIDDEN_MS);
  }

  /** After a suspend, a dead connection may look open. */
  #checkAlive(): void {
    if (this.#stream !== null && silent(Date.now(), this.#receivedMs)) this.reconnect();
  }

  #close(): void {
    window.clearTimeout(this.#retry);
    const stream = this.#stream;
    this.#stream = null;
    stream?.abort();
  }
}
