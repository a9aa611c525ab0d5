// SPDX-License-Identifier: GPL-2.0-only
// What the pages share: the last word on every volume, on health and on what people asked for.
import { ApiError, get } from "./api/client";
import { Live, type Connection } from "./api/live";
import type { Action, Decision, Health, Intent, Volumes } from "./api/types";
import { Atom } from "./lib/atom";
import { merged } from "./lib/merge";

const INTENTS_KEPT = 50;
// The stream tells of health every few seconds, whether there is news or not.
const SILENT_MS = 10_000;
const UNAUTHORIZED = 401;

export const volumes = new Atom<Volumes | null>(null);
export const health = new Atom<Health | null>(null);
export const intents = new Atom<readonly Intent[]>([]);
/** `lost`: the server does not answer; `start`: nobody knows yet. */
export const connection = new Atom<"start" | Connection>("start");
/** When this browser last heard of the volumes, by its own clock. */
export const heardMs = new Atom(0);
/** Whoever shows a list follows these. */
export const decided = new Atom<Decision | null>(null);
export const acted = new Atom<Action | null>(null);
/** Changes when lists have to be read anew. */
export const generation = new Atom(0);

export function takeVolumes(data: Volumes): void {
  heardMs.set(Date.now());
  volumes.set(data);
}

export function takeIntents(rows: readonly Intent[]): void {
  intents.set(merged(intents.get(), rows, INTENTS_KEPT));
}

/** What people call a volume; its name where nobody has told yet. */
export function titleOf(name: string): string {
  return volumes.get()?.volumes.find((each) => each.volume === name)?.title ?? name;
}

/** Ages are told by the server: browsers' clocks are often wrong. Seconds since the document. */
export function ageSeconds(atUnixSeconds: number): number {
  const told = volumes.get()?.now_unix_s ?? Date.now() / 1000;
  return Math.max(0, told - atUnixSeconds + (Date.now() - heardMs.get()) / 1000);
}

/** The server's clock now. */
export function serverNow(): number {
  const told = volumes.get()?.now_unix_s;
  return told === undefined ? Date.now() / 1000 : told + (Date.now() - heardMs.get()) / 1000;
}

async function readVolumes(): Promise<void> {
  try {
    takeVolumes(await get<Volumes>("volumes"));
  } catch {
    // The banner says that the server, or its history, is gone.
  }
}

async function readIntents(): Promise<void> {
  try {
    takeIntents((await get<{ intents: Intent[] }>("intents", { limit: INTENTS_KEPT })).intents);
  } catch {
    // The same; health says whether the history can be read.
  }
}

export async function readHealth(): Promise<void> {
  try {
    health.set(await get<Health>("health"));
    connection.set("open");
  } catch (error) {
    const locked = error instanceof ApiError && error.status === UNAUTHORIZED;
    connection.set(locked ? "locked" : "lost");
  }
}

/** Without the stream, which tells of both by itself. */
async function readPresent(): Promise<void> {
  await Promise.all([readHealth(), readVolumes()]);
}

function readLists(): void {
  void readIntents();
  generation.set(generation.get() + 1);
}

export function start(): void {
  void readIntents();
  let toldMs = Date.now();
  new Live({
    volumes: takeVolumes,
    decision: (data) => decided.set(data),
    action: (data) => acted.set(data),
    intent: (data) => takeIntents([data]),
    health: (data) => {
      toldMs = Date.now();
      health.set(data);
      connection.set("open");
    },
    reset: readLists,
    state: (state) => {
      const before = connection.get();
      connection.set(state);
      if (before === "locked" && state === "open") readLists();
      // A server may be there and have no stream left.
      if (state === "lost" && volumes.get() === null) void readPresent();
    },
  });
  setInterval(() => {
    const silent = Date.now() - toldMs >= SILENT_MS;
    if (silent && document.visibilityState === "visible") void readPresent();
  }, SILENT_MS);
}
