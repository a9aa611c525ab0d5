// SPDX-License-Identifier: GPL-2.0-only
// Texts in a storage of the browser; where it blocks that, they last as long as the page. Pure.

export type Storing = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export class Kept {
  readonly #blocked = new Map<string, string>();

  /** `storage`: not the storage itself, since even to name a blocked one throws. */
  constructor(private readonly storage: () => Storing) {}

  get(key: string): string | null {
    const here = this.#blocked.get(key);
    if (here !== undefined) return here;
    try {
      return this.storage().getItem(key);
    } catch {
      return null;
    }
  }

  set(key: string, value: string): void {
    this.#blocked.delete(key);
    try {
      this.storage().setItem(key, value);
    } catch {
      this.#blocked.set(key, value);
    }
  }

  remove(key: string): void {
    this.#blocked.delete(key);
    try {
      this.storage().removeItem(key);
    } catch {
      // Nothing is kept there.
    }
  }
}
