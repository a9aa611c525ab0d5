// SPDX-License-Identifier: GPL-2.0-only
// Where on a volume users miss the cache: one cell for each part, row by row, darker for more misses.
// A line below a cell shows what of it was moved into the cache; a dot, that some was held out.
import type { Heat, Volume } from "../api/types";
import { bytes, count, ratio } from "../lib/format";
import * as heat from "../lib/heat";
import * as map from "../lib/missMap";
import { attribute, fill, fillTable, h, s, table, text } from "./dom";

const NAME = "Misses by place on the volume";
const SHADES = 6;
const ROWS_MAX = 32;
// Below this share of misses with a known place, the summary says so.
const KNOWN_MIN = 0.95;
// In units of the SVG, of which each cell is 10 wide.
const CELL = 10;
const GAP = 0.6;
const LANE = { moved: 11.2, heldOut: 16.2, height: 20 };

export interface MissMap {
  element: HTMLElement;
  update: (volume: Volume) => void;
  destroy: () => void;
}

interface State {
  heat: Heat | null;
  enforced: boolean;
  columns: number;
  /** The cell that the user points at or has chosen by keys. */
  cell: number | null;
  /** What was drawn. */
  key: string;
}

interface Parts {
  svg: SVGSVGElement;
  plot: HTMLElement;
  unit: HTMLElement;
  legend: HTMLElement;
  reading: HTMLElement;
  rows: HTMLElement;
  details: HTMLElement;
}

export function missMap(): MissMap {
  const state: State = { heat: null, enforced: false, columns: 64, cell: null, key: "" };
  const parts = makeParts();
  const { plot, details } = parts;
  const redraw = (): void => draw(parts, state);
  const element = h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, NAME, parts.unit),
    plot,
    parts.legend,
    parts.reading,
    details,
  );
  details.addEventListener("toggle", redraw);
  plot.addEventListener("pointermove", (event) =>
    choose(parts, state, pointed(parts.svg, state, event)),
  );
  for (const leave of ["pointerleave", "blur"]) {
    plot.addEventListener(leave, () => choose(parts, state, null));
  }
  plot.addEventListener("keydown", (event) => byKey(parts, state, event));
  const resized = new ResizeObserver(() => {
    const columns = map.columnsOf(element.clientWidth);
    if (columns === state.columns) return;
    state.columns = columns;
    redraw();
  });
  resized.observe(element);
  return {
    element,
    update: (volume) => {
      const key = JSON.stringify([volume.heat, volume.mode]);
      if (key === state.key) return;
      Object.assign(state, { key, heat: volume.heat, enforced: volume.mode === "enforce" });
      redraw();
    },
    destroy: () => resized.disconnect(),
  };
}

function makeParts(): Parts {
  const svg = s("svg", { "aria-hidden": "true" });
  const rows = h("div");
  return {
    svg,
    plot: h("div", { class: "miss-map", tabindex: 0, role: "slider", "aria-label": NAME }, svg),
    unit: h("span", { class: "unit" }),
    legend: h("ul", { class: "legend" }),
    reading: h("p", { class: "reading" }),
    rows,
    details: h("details", {}, h("summary", {}, "As a table"), rows),
  };
}

function draw(parts: Parts, state: State): void {
  const found = state.heat;
  const known = found !== null && found.bins.length > 0 && found.why === "";
  for (const each of [parts.plot, parts.legend, parts.details]) each.hidden = !known;
  text(parts.unit, known ? unitOf(found, state.columns) : "");
  if (known) {
    paint(parts.svg, state, found);
    drawLegend(parts.legend, state, found);
    fillTable(parts.rows, () => asTable(found));
  }
  read(parts, state);
}

/** Shows the chosen cell and what is known of it, else a summary. */
function read({ plot, reading, svg }: Parts, state: State): void {
  const sentence = readingOf(state);
  text(reading, sentence);
  attribute(plot, "aria-valuemin", "0");
  attribute(plot, "aria-valuemax", String(Math.max(0, cellsOf(state) - 1)));
  attribute(plot, "aria-valuenow", String(state.cell ?? 0));
  attribute(plot, "aria-valuetext", sentence);
  const mark = svg.querySelector(".chosen");
  if (mark) place(mark, state);
}

function choose(parts: Parts, state: State, cell: number | null): void {
  state.cell = cell;
  read(parts, state);
}

function byKey(parts: Parts, state: State, event: KeyboardEvent): void {
  const first = state.cell === null && event.key.startsWith("Arrow");
  const next = first ? 0 : map.cellByKey(event.key, state.cell ?? 0, cellsOf(state), state.columns);
  if (next === null) return;
  event.preventDefault();
  choose(parts, state, next);
}

function cellsOf(state: State): number {
  return state.heat?.bins.length ?? 0;
}

function unitOf(found: Heat, columns: number): string {
  const row = Math.min(columns, found.bins.length) * found.bin_bytes;
  return `each cell ${bytes(found.bin_bytes)}, each row ${bytes(row)}, from the start of the volume`;
}

/** Whether anything is drawn below the cells. */
function marked(found: Heat): boolean {
  return found.moved.length + found.pending.length + found.held_out.length > 0;
}

function rowHeight(found: Heat): number {
  return marked(found) ? LANE.height : CELL + GAP;
}

function paint(svg: SVGSVGElement, state: State, found: Heat): void {
  const most = Math.max(...found.bins);
  const rows = Math.ceil(found.bins.length / state.columns);
  attribute(svg, "viewBox", `0 0 ${state.columns * CELL} ${rows * rowHeight(found)}`);
  fill(
    svg,
    found.bins.map((misses, index) => {
      const [x, y] = corner(index, state.columns, rowHeight(found));
      return [
        s("rect", {
          class: `miss-${heat.shade(misses, most, SHADES)}`,
          x: x + GAP / 2,
          y: y + GAP / 2,
          width: CELL - GAP,
          height: CELL - GAP,
        }),
        marks(map.partAt(found, index), x, y),
      ];
    }),
    s("rect", { class: "chosen", width: CELL, height: CELL }),
  );
}

function corner(index: number, columns: number, height: number): [number, number] {
  return [(index % columns) * CELL, Math.floor(index / columns) * height];
}

/** Thick for the share of what is worth a move that was moved, thin for the rest of it. */
function marks(part: map.Part, x: number, y: number): (SVGElement | false)[] {
  const worth = part.moved + part.pending;
  const whole = CELL - 2 * GAP;
  const moved = worth > 0 ? (part.moved / worth) * whole : 0;
  const [left, top] = [x + GAP, y + LANE.moved];
  return [
    worth > 0 &&
      s("rect", { class: "part-move", x: left, y: top + 0.9, width: whole, height: 0.8 }),
    moved > 0 && s("rect", { class: "part-move", x: left, y: top, width: moved, height: 2.6 }),
    part.heldOut > 0 &&
      s("circle", { class: "part-held-out", cx: x + CELL / 2, cy: y + LANE.heldOut, r: 1.7 }),
  ];
}

/** Moves the frame to the chosen cell. */
function place(mark: Element, state: State): void {
  attribute(mark, "visibility", state.cell === null ? "hidden" : null);
  if (state.cell === null || state.heat === null) return;
  const [x, y] = corner(state.cell, state.columns, rowHeight(state.heat));
  attribute(mark, "x", String(x));
  attribute(mark, "y", String(y));
}

function pointed(svg: SVGSVGElement, state: State, event: PointerEvent): number | null {
  const box = svg.getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width;
  const y = (event.clientY - box.top) / box.height;
  return map.cellAt(x, y, cellsOf(state), state.columns);
}

function drawLegend(box: HTMLElement, state: State, found: Heat): void {
  const mark = (shape: string, label: string): HTMLElement =>
    h("li", {}, h("span", { class: `swatch-${shape}`, "aria-hidden": "true" }), label);
  fill(
    box,
    shadeItems(found),
    found.moved.length > 0 && mark("moved", "moved into the cache"),
    found.pending.length > 0 &&
      mark("pending", state.enforced ? "to be moved" : "would be moved in enforce"),
    found.held_out.length > 0 && mark("held-out", "held out to compare"),
  );
}

function shadeItems(found: Heat): HTMLElement[] {
  const most = Math.max(...found.bins);
  if (most === 0) return [];
  const from = [...new Set(heat.shadeFrom(most, SHADES))];
  const items = from.map((least) => {
    const swatch = h("span", { class: "swatch block", "aria-hidden": "true" });
    swatch.style.color = `var(--heat-${heat.shade(least, most, SHADES)})`;
    return h("li", {}, swatch, `≥ ${count(map.perMinute(found, least))}`);
  });
  return [h("li", {}, "Misses per minute:"), ...items];
}

function readingOf(state: State): string {
  const found = state.heat;
  if (!found) return "Not measured by this version of ebbgated.";
  if (found.why !== "") return `Unknown: ${found.why}.`;
  if (state.cell !== null) return partText(map.partAt(found, state.cell), found, state.enforced);
  return summary(found);
}

/** `1,234 misses per minute, half of them in 3.5% of the volume.` */
function summary(found: Heat): string {
  if (found.misses === 0) return "No misses in the last minutes.";
  const rate = `${count(map.perMinute(found, found.misses))} misses per minute`;
  const half = map.halfShare(found.bins);
  if (half === null) return `${rate}; their places are unknown.`;
  const place = `in ${ratio(half)} of the volume. Recent ones count more.`;
  const known = 1 - found.unlisted / found.misses;
  if (known >= KNOWN_MIN) return `${rate}, half of them ${place}`;
  return `${rate}. The place of ${ratio(known)} is known: half of these are ${place}`;
}

function partText(part: map.Part, found: Heat, enforced: boolean): string {
  const misses = `${count(map.perMinute(found, part.misses))} misses per minute`;
  const share = part.misses > 0 ? ` (${ratio(part.misses / found.misses)} of all)` : "";
  const rest = [
    part.moved > 0 && `${part.moved} MiB moved`,
    part.pending > 0 && `${part.pending} MiB ${enforced ? "to be moved" : "would be moved"}`,
    part.heldOut > 0 && `${part.heldOut} MiB held out`,
  ].filter((each) => each !== false);
  const marks = rest.length > 0 ? `; ${rest.join(", ")}` : "";
  return `${map.placeText(part)}: ${misses}${share}${marks}.`;
}

function asTable(found: Heat): HTMLElement {
  const lines = map
    .hottest(found, ROWS_MAX)
    .map((part) => [
      map.placeText(part),
      count(map.perMinute(found, part.misses)),
      ratio(part.misses / found.misses),
      `${part.moved} MiB`,
      `${part.pending} MiB`,
      `${part.heldOut} MiB`,
    ]);
  const head = ["Part", "Misses/min", "Share", "Moved", "Chosen", "Held out"];
  return table(`${NAME}: the hottest parts`, head, lines, { class: "numbers" });
}
