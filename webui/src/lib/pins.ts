// SPDX-License-Identifier: GPL-2.0-only
// What the pages say of pinned files. Pure.
import type { Pin } from "../api/types";
import { bytes, plural, ratio } from "./format";

type Sized = Pick<Pin, "size_bytes" | "cache_ratio">;

/** `too large`; the words of `ebbgate pins`. */
export function stateLabel(state: string): string {
  return state.replaceAll("_", " ");
}

/** `700 MiB, 21% of the cache · 100% of touches hit · by admin`; without what is unknown. */
export function pinFigures(pin: Sized & Pick<Pin, "hit_ratio" | "who">): string {
  const hits = pin.hit_ratio === null ? "" : `${ratio(pin.hit_ratio)} of touches hit`;
  const who = pin.who === "" ? "" : `by ${pin.who}`;
  return [sizeText(pin), hits, who].filter((part) => part !== "").join(" · ");
}

/** `2 files, 1.5 GiB, 24% of the cache`; of unknown sizes only the number of files. */
export function pinTotals(pins: readonly Sized[]): string {
  const sum = (values: readonly (number | null)[]): number | null =>
    values.every((value) => value !== null) ? values.reduce((a, b) => a + b, 0) : null;
  const total = {
    size_bytes: sum(pins.map((pin) => pin.size_bytes)),
    cache_ratio: sum(pins.map((pin) => pin.cache_ratio)),
  };
  return [plural(pins.length, "file"), sizeText(total)].filter((part) => part !== "").join(", ");
}

function sizeText(pin: Sized): string {
  if (pin.size_bytes === null) return "";
  const share = pin.cache_ratio === null ? "" : `, ${ratio(pin.cache_ratio)} of the cache`;
  return `${bytes(pin.size_bytes)}${share}`;
}
