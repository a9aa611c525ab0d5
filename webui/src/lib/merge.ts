// SPDX-License-Identifier: GPL-2.0-only
// Merges rows that arrive twice or late into one list, newest first. Pure.

export interface Numbered {
  id: number;
}

/** `rows` with `arrived`: newest first, each id once (the later row counts), at most `most`. */
export function merged<T extends Numbered>(
  rows: readonly T[],
  arrived: readonly T[],
  most: number,
): T[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const row of arrived) byId.set(row.id, row);
  return [...byId.values()].sort((a, b) => b.id - a.id).slice(0, most);
}

/** Time before the next attempt: doubled up to a limit. */
export function backoffMs(attempt: number, firstMs = 500, mostMs = 10_000): number {
  return Math.min(mostMs, firstMs * 2 ** Math.max(0, attempt));
}

/** Is the stream dead? The server sends something at least every 15 s. */
export function silent(nowMs: number, receivedMs: number, patienceMs = 40_000): boolean {
  return nowMs - receivedMs > patienceMs;
}
