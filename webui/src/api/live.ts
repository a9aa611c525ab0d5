// SPDX-License-Identifier: GPL-2.0-only
// The event stream: what happens now, and after a sleep or a break what was missed meanwhile.
// A browser's EventSource reconnects by itself with Last-Event-ID while the server answers at all. It
// gives up for good on an error status, and after a sleep it may hold a dead connection that looks
// alive. Both are handled here with a new EventSource; that one cannot set the header, so the lists
// are read anew then, as after a `reset`.
import { backoffMs, silent } from "../lib/merge";
import type { Action, Decision, Health, Intent, Volumes } from "./types";

export interface Handlers {
  volumes: (data: Volumes) => void;
  decision: (data: Decision) => void;
  action: (data: Action) => void;
  intent: (data: Intent) => void;
  health: (data: Health) => void;
  /** More was missed than the server would repeat: lists have to be read anew. */
  reset: () => void;
  state: (state: "open" | "lost") => void;
}

const EVENTS = ["volumes", "decision", "action", "intent", "health"] as const;
const LOOK_MS = 5_000;

export class Live {
  #source: EventSource | null = null;
  #opened = false;
  #heardMs = Date.now();
  #attempt = 0;
  #retry: number | undefined;

  constructor(private readonly handlers: Handlers) {
    setInterval(() => this.#look(), LOOK_MS);
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#look();
    });
    window.addEventListener("online", () => this.reconnect());
    window.addEventListener("pagehide", () => this.#close());
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) this.reconnect();
    });
    this.reconnect();
  }

  reconnect(): void {
    this.#close();
    const source = new EventSource("/api/v1/events");
    let again = this.#opened;
    this.#source = source;
    this.#heardMs = Date.now();
    source.onopen = () => {
      this.#alive();
      if (again) this.handlers.reset();
      again = false;
    };
    source.onerror = () => this.#broken(source);
    for (const name of EVENTS) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        this.#heardMs = Date.now();
        (this.handlers[name] as (data: unknown) => void)(JSON.parse(event.data));
      });
    }
    source.addEventListener("reset", () => this.handlers.reset());
  }

  #alive(): void {
    this.#heardMs = Date.now();
    this.#attempt = 0;
    this.#opened = true;
    this.handlers.state("open");
  }

  #broken(source: EventSource): void {
    if (source !== this.#source) return;
    this.handlers.state("lost");
    if (source.readyState !== EventSource.CLOSED || this.#retry !== undefined) return;
    this.#retry = window.setTimeout(() => this.reconnect(), backoffMs(this.#attempt));
    this.#attempt += 1;
  }

  /** Comments of the server do not reach us, but a daemon that lives says something all the time. */
  #look(): void {
    const dead = this.#source?.readyState === EventSource.CLOSED && this.#retry === undefined;
    if (dead || silent(Date.now(), this.#heardMs)) this.reconnect();
  }

  #close(): void {
    window.clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#source?.close();
    this.#source = null;
  }
}
