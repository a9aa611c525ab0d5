// SPDX-License-Identifier: GPL-2.0-only
// The hit ratio of caches of other sizes, with the present size marked.
import type { MissRatio, Volume } from "../api/types";
import * as cacheSizes from "../lib/cacheSizes";
import { bytes, nanoseconds, ratio } from "../lib/format";
import { axisLabels, empty, frame, HEIGHT, marker, markLabel, WIDTH, type Part } from "./bars";
import { attribute, fill, s, table, text } from "./dom";

const TITLE = "Hit ratio by size of the cache";

export function sizeCurve(): Part {
  const part = frame(TITLE, "share of reads, modelled");
  attribute(part.plot, "role", "img");
  const update = (volume: Volume): void => {
    const curve = volume.miss_ratio;
    if (!curve || curve.miss_ratios.length === 0) {
      empty(part, unknown(curve));
      return;
    }
    fill(
      part.svg,
      s("path", { class: "curve-hit", d: cacheSizes.path(curve, WIDTH, HEIGHT) }),
      marker(0.5, "mark-size"),
    );
    const present = curve.sizes_bytes[(curve.sizes_bytes.length - 1) / 2] ?? 0;
    const size = (octave: number): string => bytes(present * 2 ** octave);
    markLabel(part.plot, 0.5, `now ${size(0)}`);
    axisLabels(part.axis, -cacheSizes.OCTAVES, cacheSizes.OCTAVES, size);
    const sentence = reading(curve);
    text(part.reading, sentence);
    attribute(part.plot, "aria-label", sentence);
    part.setTable(() => rows(curve));
  };
  return { element: part.element, update };
}

function unknown(curve: MissRatio | null | undefined): string {
  if (!curve) return "Not measured by this version of ebbgated.";
  return `Too few reads so far: ${curve.sampled_reads} of ${curve.reads_min} sampled reads.`;
}

function reading(curve: MissRatio): string {
  const at = (octaves: number): string => ratio(cacheSizes.hitRatio(curve, octaves));
  return (
    `A cache twice as large would hit ${at(1)} of reads, one half as large ${at(-1)}, ` +
    `one of this size ${at(0)}. Modelled from ${nanoseconds(curve.observed_ns)} of reads: ` +
    "least recently used blocks of 4 KiB are evicted, and nothing bypasses the cache."
  );
}

function rows(curve: MissRatio): HTMLElement {
  const found = curve.sizes_bytes.map((size, i) => [
    bytes(size),
    ratio(1 - (curve.miss_ratios[i] ?? 1)),
  ]);
  return table(TITLE, ["Size", "Hit ratio"], found, { class: "numbers" });
}
