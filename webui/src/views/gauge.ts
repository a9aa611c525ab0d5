// SPDX-License-Identifier: GPL-2.0-only
// The gauge of dirty data in the cache, with floor and cutoff.
import type { Volume } from "../api/types";
import { bytes } from "../lib/format";
import { describe, gauge, spread, type Levels } from "../lib/gauge";
import { attribute, fill, h, s } from "./dom";

const WIDTH = 100;
const HEIGHT = 160;
// Twice as wide as the gauge, so that it can move by one wave.
const WAVE = wave();
const LABEL_APART = 0.115;
const TITLES = {
  cutoff: "At this much dirty data the kernel stops caching writes.",
  level: "Data in the cache that is not on the backing device yet.",
  floor: "With less dirty data than this, idle periods are not used for write-back.",
};

export interface GaugeView {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function levelsOf(volume: Volume): Levels {
  return {
    dirtyBytes: volume.dirty_bytes,
    cacheBytes: volume.cache_bytes,
    floorBytes: volume.dirty_floor_bytes,
    cutoffBytes: volume.cutoff_dirty_bytes,
  };
}

/** An upright gauge with labels; `small`: a horizontal one without. */
export function tideGauge(small = false): GaugeView {
  return small ? horizontal() : upright();
}

function upright(): GaugeView {
  const water = s("g", { class: "water" }, s("path", { d: WAVE }));
  const floor = s("line", { class: "floor", x1: 0, x2: WIDTH });
  const cutoff = s("line", { class: "cutoff", x1: 0, x2: WIDTH });
  const svg = s(
    "svg",
    {
      class: "staff",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    ticks(),
    water,
    floor,
    cutoff,
  );
  const labels = h("div", { class: "staff-labels", "aria-hidden": "true" });
  const element = h("div", { class: "tide", role: "img" }, svg, labels);
  const update = (volume: Volume): void => {
    const levels = levelsOf(volume);
    const found = gauge(levels);
    attribute(element, "aria-label", describe(levels));
    element.dataset["alarm"] = found.alarm;
    water.style.transform = `translateY(${((1 - (found.level ?? 0)) * HEIGHT).toFixed(2)}px)`;
    attribute(water, "visibility", found.level === null ? "hidden" : null);
    line(floor, found.floor);
    line(cutoff, found.cutoff);
    label(labels, levels, found);
  };
  return { element, update };
}

function line(element: SVGElement, at: number | null): void {
  attribute(element, "visibility", at === null ? "hidden" : null);
  const y = ((1 - (at ?? 0)) * HEIGHT).toFixed(2);
  attribute(element, "y1", y);
  attribute(element, "y2", y);
}

function label(box: HTMLElement, levels: Levels, found: ReturnType<typeof gauge>): void {
  const all = [
    ["cutoff", found.cutoff, `limit ${bytes(levels.cutoffBytes)}`],
    ["level", found.level, `${bytes(levels.dirtyBytes)} dirty`],
    ["floor", found.floor, `min. ${bytes(levels.floorBytes)}`],
  ] as const;
  const shown = all.filter(([, at]) => at !== null);
  const places = spread(
    shown.map(([, at]) => at ?? 0),
    LABEL_APART,
  );
  if (shown.length === 0) {
    fill(box, h("span", { class: "unknown" }, "level unknown"));
    return;
  }
  fill(
    box,
    shown.map(([name, , text], index) => {
      const span = h("span", { class: name, title: TITLES[name] }, text);
      span.style.bottom = `${((places[index] ?? 0) * 100).toFixed(1)}%`;
      return span;
    }),
  );
}

function horizontal(): GaugeView {
  const water = s("rect", { class: "water-bar", x: 0, y: 0, height: 12 });
  const floor = s("line", { class: "floor", y1: 0, y2: 12 });
  const cutoff = s("line", { class: "cutoff", y1: 0, y2: 12 });
  const svg = s(
    "svg",
    { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    water,
    floor,
    cutoff,
  );
  const element = h("div", { class: "tide-bar", role: "img" }, svg);
  const update = (volume: Volume): void => {
    const levels = levelsOf(volume);
    const found = gauge(levels);
    attribute(element, "aria-label", describe(levels));
    element.dataset["alarm"] = found.alarm;
    attribute(water, "width", ((found.level ?? 0) * 100).toFixed(2));
    for (const [mark, at] of [
      [floor, found.floor],
      [cutoff, found.cutoff],
    ] as const) {
      attribute(mark, "visibility", at === null ? "hidden" : null);
      attribute(mark, "x1", ((at ?? 0) * 100).toFixed(2));
      attribute(mark, "x2", ((at ?? 0) * 100).toFixed(2));
    }
  };
  return { element, update };
}

function ticks(): SVGElement {
  const marks = Array.from({ length: 9 }, (_, i) => {
    const y = ((i + 1) * HEIGHT) / 10;
    return s("line", { x1: 0, x2: i % 5 === 4 ? 14 : 8, y1: y, y2: y });
  });
  return s("g", { class: "ticks" }, marks);
}

function wave(): string {
  const crests = Array.from({ length: 4 }, (_, i) => {
    const x = i * 50;
    return `C${x + 17} -3 ${x + 17} 3 ${x + 25} 0 S${x + 42} -3 ${x + 50} 0`;
  });
  return `M0 0${crests.join("")}V${HEIGHT + 4}H0z`;
}
