// SPDX-License-Identifier: GPL-2.0-only
// State shared by all pages: the latest data on volumes, health and requested changes.
import { ApiError, get } from "./api/client";
import { Live, type Connection } from "./api/live";
import type { Action, Decision, Health, Intent, Volumes } from "./api/types";
import { Atom } from "./lib/atom";
import { merged } from "./lib/merge";

const INTENTS_KEPT = 50;
// The stream sends health every few seconds, changed or not.
const SILENT_MS = 10_000;
const UNAUTHORIZED = 401;

export const volumes = new Atom<Volumes | null>(null);
export const health = new Atom<Health | null>(null);
export const intents = new Atom<readonly Intent[]>([]);
/** `lost`: the server does not answer; `start`: not known yet. */
export const connection = new Atom<"start" | Connection>("start");
/** When the latest data on volumes arrived, by this browser's clock. */
export const receivedMs = new Atom(0);
/** The newest rows, for pages that show a list. */
export const decided = new Atom<Decision | null>(null);
export const acted = new Atom<Action | null>(null);
/** Changes when lists have to be read again. */
export const generation = new Atom(0);

export function receiveVolumes(data: Volumes): void {
  receivedMs.set(Date.now());
  volumes.set(data);
}

export function mergeIntents(rows: readonly Intent[]): void {
  intents.set(merged(intents.get(), rows, INTENTS_KEPT));
}

/** The title of a volume, or its kernel name while the title is not known. */
export function titleOf(name: string): string {
  return volumes.get()?.volumes.find((each) => each.volume === name)?.title ?? name;
}

/** Age by the server's clock, because browsers' clocks are often wrong. */
export function ageSeconds(atUnixSeconds: number): number {
  const serverTime = volumes.get()?.now_unix_s ?? Date.now() / 1000;
  return Math.max(0, serverTime - atUnixSeconds + (Date.now() - receivedMs.get()) / 1000);
}

/** The server's time now. */
export function serverNow(): number {
  const serverTime = volumes.get()?.now_unix_s;
  return serverTime === undefined
    ? Date.now() / 1000
    : serverTime + (Date.now() - receivedMs.get()) / 1000;
}

/** The same for a page that may be the first one: without data on volumes the server is asked. */
export async function askServerNow(): Promise<number> {
  return volumes.get() === null ? (await get<Health>("health")).now_unix_s : serverNow();
}

async function readVolumes(): Promise<void> {
  try {
    receiveVolumes(await get<Volumes>("volumes"));
  } catch {
    // The banner reports a lost server or history.
  }
}

/** `before`: rows that the answer replaces; what arrived since is newer than the answer. */
async function readIntents(before: readonly Intent[]): Promise<void> {
  try {
    const found = await get<{ intents: Intent[] }>("intents", { limit: INTENTS_KEPT });
    const since = intents.get().filter((row) => !before.includes(row));
    intents.set(merged(found.intents, since, INTENTS_KEPT));
  } catch {
    // Health reports whether the history can be read.
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

/** Needed only without the stream, which sends both. */
async function poll(): Promise<void> {
  await Promise.all([readHealth(), readVolumes()]);
}

/** The history may be another one, whose numbers begin again. */
function readLists(): void {
  void readIntents(intents.get());
  generation.set(generation.get() + 1);
}

export function start(): void {
  void readIntents([]);
  let healthMs = Date.now();
  new Live({
    volumes: receiveVolumes,
    decision: (data) => decided.set(data),
    action: (data) => acted.set(data),
    intent: (data) => mergeIntents([data]),
    health: (data) => {
      healthMs = Date.now();
      health.set(data);
      connection.set("open");
    },
    reset: readLists,
    state: (state) => {
      if (state === "lost") {
        // The server may answer although it has no stream left.
        void (volumes.get() === null ? poll() : readHealth());
        return;
      }
      const before = connection.get();
      connection.set(state);
      if (before === "locked" && state === "open") readLists();
    },
  });
  setInterval(() => {
    const silent = Date.now() - healthMs >= SILENT_MS;
    if (silent && document.visibilityState === "visible") void poll();
  }, SILENT_MS);
}
