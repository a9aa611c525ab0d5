// SPDX-License-Identifier: GPL-2.0-only
// Bytes by run length with the current cutoff, and what another cutoff would bypass.
import type { Volume } from "../api/types";
import { bytes, ratio } from "../lib/format";
import * as runs from "../lib/runs";
import {
  axisLabels,
  empty,
  frame,
  HEIGHT,
  marker,
  markLabel,
  noMarkLabel,
  WIDTH,
  type Frame,
  type Part,
} from "./bars";
import { attribute, fill, h, s, table, text } from "./dom";

const NAME = "Sequential cutoff to try";
const NOTHING = "No sequential run measured yet.";

/** Shows the current cutoff, or one that the user tries by pointer or arrow keys. */
export function runCurve(): Part {
  const part = frame("Bytes by length of sequential run", "bytes; recent ones count more");
  const state: Curve = { part, volume: null, from: 0, end: 1, tried: null };
  attribute(part.plot, "role", "slider");
  attribute(part.plot, "tabindex", "0");
  attribute(part.plot, "aria-label", NAME);
  setValue(part.plot, 0, NOTHING);
  part.plot.classList.add("slider");
  part.plot.addEventListener("pointermove", (event) => {
    const box = part.plot.getBoundingClientRect();
    setTried(state, runs.sizeAt((event.clientX - box.left) / box.width, state.from, state.end));
  });
  part.plot.addEventListener("pointerleave", () => setTried(state, null));
  part.plot.addEventListener("keydown", (event) => byKey(state, event));
  part.plot.addEventListener("blur", () => setTried(state, null));
  const legendLine = h(
    "ul",
    { class: "legend" },
    h("li", {}, h("span", { class: "swatch run-read" }), "read"),
    h("li", {}, h("span", { class: "swatch run-write" }), "write"),
  );
  part.plot.before(legendLine);
  return {
    element: part.element,
    update: (volume) => {
      state.volume = volume;
      draw(state);
    },
  };
}

interface Curve {
  part: Frame;
  volume: Volume | null;
  from: number;
  end: number;
  tried: number | null;
}

export function cutoffOf(volume: Volume): number | null {
  const value = volume.knobs["sequential_cutoff"]?.value;
  return value != null && /^\d+$/.test(value) ? Number(value) : null;
}

function setTried(state: Curve, size: number | null): void {
  state.tried = size;
  if (state.volume) draw(state);
}

function byKey(state: Curve, event: KeyboardEvent): void {
  const now = state.tried ?? (state.volume ? cutoffOf(state.volume) : null) ?? 2 ** 20;
  const steps: Record<string, number> = {
    ArrowRight: 1,
    ArrowUp: 1,
    ArrowLeft: -1,
    ArrowDown: -1,
    PageUp: 3,
    PageDown: -3,
  };
  const step = steps[event.key];
  const lowest = runs.bucketLowBytes(state.from);
  const highest = runs.bucketLowBytes(state.end);
  let next: number;
  if (step !== undefined) next = now * 2 ** (step / 2);
  else if (event.key === "Home") next = lowest;
  else if (event.key === "End") next = highest;
  else return;
  event.preventDefault();
  setTried(state, Math.round(Math.min(highest, Math.max(lowest, next))));
}

function draw(state: Curve): void {
  const volume = state.volume;
  if (!volume) return;
  const [read, write] = [volume.run_bytes["read"] ?? [], volume.run_bytes["write"] ?? []];
  const all = runs.addRuns(read, write);
  const found = runs.occupied(all);
  if (!found) {
    empty(state.part, NOTHING);
    setValue(state.part.plot, 0, NOTHING);
    return;
  }
  // empty() has replaced the name.
  attribute(state.part.plot, "aria-label", NAME);
  const cutoff = cutoffOf(volume);
  const bucket = cutoff ? Math.log2(cutoff / 512) : found[0];
  state.from = Math.max(0, Math.min(found[0], Math.floor(bucket) - 1));
  state.end = Math.max(found[1], Math.ceil(bucket) + 1);
  const { from, end } = state;
  fill(
    state.part.svg,
    stacked(read, write, from, end),
    cutoff !== null && cutoff > 0 && marker(runs.position(cutoff, from, end), "mark-cutoff"),
    state.tried !== null && marker(runs.position(state.tried, from, end), "mark-tried"),
  );
  if (cutoff !== null && cutoff > 0)
    markLabel(state.part.plot, runs.position(cutoff, from, end), `cutoff ${bytes(cutoff)}`);
  else noMarkLabel(state.part.plot);
  axisLabels(state.part.axis, from, end, (at) => bytes(runs.bucketLowBytes(at)));
  showReading(state, all, cutoff);
  runRows(state, read, write);
}

function stacked(
  read: readonly number[],
  write: readonly number[],
  from: number,
  end: number,
): SVGElement[] {
  const most = Math.max(...runs.addRuns(read, write), 1);
  const width = WIDTH / (end - from);
  const found: SVGElement[] = [];
  for (let bucket = from; bucket < end; bucket += 1) {
    const heights = [read, write].map((part) => ((part[bucket] ?? 0) / most) * (HEIGHT - 8));
    const x = (bucket - from) * width + 1;
    let y = HEIGHT;
    heights.forEach((height, i) => {
      y -= height;
      found.push(
        s("rect", {
          class: i === 0 ? "run-read" : "run-write",
          x: x.toFixed(1),
          y: y.toFixed(1),
          width: Math.max(width - 2, 1).toFixed(1),
          height: height.toFixed(1),
        }),
      );
    });
  }
  return found;
}

function showReading(state: Curve, all: readonly number[], cutoff: number | null): void {
  const at = state.tried ?? cutoff;
  const plot = state.part.plot;
  if (at === null) {
    text(
      state.part.reading,
      "The current cutoff is unknown. Point at a run length or use the arrow keys to try one.",
    );
    return;
  }
  const share = cutoff === 0 && state.tried === null ? 0 : runs.shareBeyond(all, at);
  const which = state.tried === null ? "At the current cutoff of" : "At a cutoff of";
  const sentence =
    at === 0
      ? "The cutoff is off: long runs do not bypass the cache."
      : `${which} ${bytes(at)}, ${ratio(share)} of bytes bypass the cache.`;
  text(state.part.reading, sentence);
  setValue(plot, Math.round(runs.position(at, state.from, state.end) * 100), sentence);
}

/** Tells assistive technology where the slider is; without a value it is no slider to them. */
function setValue(plot: HTMLElement, percent: number, sentence: string): void {
  attribute(plot, "aria-valuemin", "0");
  attribute(plot, "aria-valuemax", "100");
  attribute(plot, "aria-valuenow", String(percent));
  attribute(plot, "aria-valuetext", sentence);
}

function runRows(state: Curve, read: readonly number[], write: readonly number[]): void {
  const all = runs.addRuns(read, write);
  const rows: string[][] = [];
  for (let bucket = state.from; bucket < state.end; bucket += 1) {
    const low = runs.bucketLowBytes(bucket);
    rows.push([
      `${bytes(low)} to ${bytes(2 * low)}`,
      bytes(read[bucket] ?? 0),
      bytes(write[bucket] ?? 0),
      ratio(runs.shareBeyond(all, low)),
    ]);
  }
  state.part.setTable(() =>
    table(
      "Bytes by length of sequential run",
      ["Run length", "Read", "Write", "Bypass with cutoff at lower end"],
      rows,
      { class: "numbers" },
    ),
  );
}
