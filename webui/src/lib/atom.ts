// SPDX-License-Identifier: GPL-2.0-only
// A value that calls its listeners when it changes. Pure.
//
//   const theme = new Atom<"light" | "dark">("light");
//   const stop = theme.listen((value) => draw(value));   // now, and at every change
//   theme.set("dark");

export class Atom<T> {
  readonly #listeners = new Set<(value: T) => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener(value);
  }

  listen(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#value);
    return () => this.#listeners.delete(listener);
  }
}
