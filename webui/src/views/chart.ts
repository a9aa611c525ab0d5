// SPDX-License-Identifier: GPL-2.0-only
// A chart over time: uPlot on a canvas, with unit, legend and a table of its values.
import uPlot from "uplot";
import { clock, dateTime, UNKNOWN, type Maybe } from "../lib/format";
import { byteTicks, summary, thinned, type Column } from "../lib/series";
import { fill, fillTable, h, table, uid } from "./dom";

export interface Line {
  label: string;
  /** The CSS custom property with the colour. */
  colour: string;
  /** Filled to zero. */
  area?: boolean;
  dashed?: boolean;
}

export interface ChartOptions {
  title: string;
  unit: string;
  lines: readonly Line[];
  write: (value: Maybe<number>) => string;
  /** Values below zero are labelled without the sign. */
  mirrored?: boolean;
  binary?: boolean;
}

export interface ChartView {
  element: HTMLElement;
  update: (at: readonly number[], columns: readonly Column[]) => void;
  destroy: () => void;
}

const ROWS = 24;
const HEIGHT = 200;
const sync = uPlot.sync("time");

export function chart(options: ChartOptions): ChartView {
  const title = uid("chart");
  const canvas = h("div", { class: "plot", role: "img", "aria-labelledby": title });
  const about = h("p", { class: "visually-hidden" });
  const reading = h("p", { class: "reading", "aria-hidden": "true" });
  const rows = h("div");
  const details = h("details", {}, h("summary", {}, "As a table"), rows);
  const element = h(
    "figure",
    { class: "chart" },
    h("figcaption", { id: title }, options.title, h("span", { class: "unit" }, options.unit)),
    legend(options.lines),
    canvas,
    reading,
    about,
    details,
  );
  let data: uPlot.AlignedData = [[]];
  let plot: uPlot | null = null;
  const updateTable = (): void => fillTable(rows, () => asTable(options, data));
  const draw = (): void => {
    plot?.destroy();
    plot = canvas.clientWidth > 0 ? new uPlot(setup(options, canvas, reading), data, canvas) : null;
  };
  details.addEventListener("toggle", updateTable);
  const resized = new ResizeObserver(() => {
    if (!plot) draw();
    else if (plot.width !== canvas.clientWidth)
      plot.setSize({ width: canvas.clientWidth, height: HEIGHT });
  });
  resized.observe(canvas);
  window.addEventListener("ebbgate-theme", draw);
  return {
    element,
    update: (at, columns) => {
      data = [at as number[], ...columns.map((column) => column as (number | null)[])];
      fill(about, inWords(options, columns));
      if (plot) plot.setData(data);
      updateTable();
    },
    destroy: () => {
      resized.disconnect();
      window.removeEventListener("ebbgate-theme", draw);
      plot?.destroy();
    },
  };
}

export function legend(lines: readonly Line[]): HTMLElement {
  return h(
    "ul",
    { class: "legend" },
    lines.map((line) => {
      const swatch = h("span", {
        class: line.dashed ? "swatch dashed" : "swatch",
        "aria-hidden": "true",
      });
      swatch.style.color = `var(${line.colour})`;
      return h("li", {}, swatch, line.label);
    }),
  );
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function setup(options: ChartOptions, box: HTMLElement, reading: HTMLElement): uPlot.Options {
  const ink = colour("--ink-3");
  const grid = { stroke: colour("--line"), width: 1 };
  const write = (value: number): string =>
    options.write(options.mirrored ? Math.abs(value) : value);
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { sync: { key: sync.key }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (_, min, max) => bounds(min, max) } },
    axes: [
      {
        stroke: ink,
        grid,
        ticks: grid,
        size: 30,
        space: 72,
        font: "12px system-ui",
        values: times,
      },
      {
        stroke: ink,
        grid,
        ticks: { show: false },
        size: 76,
        font: "12px system-ui",
        splits: options.binary ? (_u, _i, min, max) => splits(min, max) : undefined,
        values: (_, values) => values.map(write),
      },
    ],
    series: [{}, ...options.lines.map(series)],
    hooks: { setCursor: [(plot) => read(plot, options, reading)] },
  };
}

function bounds(min: number | null, max: number | null): [number, number] {
  const low = Math.min(0, min ?? 0);
  const high = Math.max(0, max ?? 0);
  return low === high ? [0, 1] : [low * 1.08, high * 1.08];
}

function splits(min: number, max: number): number[] {
  const most = Math.max(Math.abs(min), max);
  const ticks = byteTicks(most, min < 0 && max > 0 ? 3 : 4);
  const below = ticks
    .slice(1)
    .map((tick) => -tick)
    .reverse();
  return [...below, ...ticks].filter((tick) => tick >= min && tick <= max);
}

/** Time labels in local time; dates if the range is longer than a day. */
function times(_: uPlot, values: number[]): string[] {
  const far = (values.at(-1) ?? 0) - (values[0] ?? 0) > 86400 * 1.5;
  const near = (values[1] ?? 0) - (values[0] ?? 0) < 60;
  return values.map((at) => {
    if (far) return dateTime(at).slice(5, 10);
    return near ? clock(at) : clock(at).slice(0, 5);
  });
}

function series(line: Line): uPlot.Series {
  const stroke = colour(line.colour);
  return {
    label: line.label,
    stroke,
    width: 1.5,
    spanGaps: false,
    points: { show: false },
    ...(line.area ? { fill: `${stroke}38` } : {}),
    ...(line.dashed ? { dash: [6, 4] } : {}),
  };
}

/** Shows the values under the pointer in a line below the chart. */
function read(plot: uPlot, options: ChartOptions, reading: HTMLElement): void {
  const index = plot.cursor.idx;
  const at = index == null ? undefined : plot.data[0][index];
  if (index == null || at === undefined) {
    fill(reading);
    return;
  }
  const parts = options.lines.map((line, i) => {
    const value = plot.data[i + 1]?.[index];
    return `${line.label} ${write(options, value)}`;
  });
  fill(reading, `${dateTime(at)}  ${parts.join(" · ")}`);
}

function write(options: ChartOptions, value: Maybe<number>): string {
  return value == null ? UNKNOWN : options.write(options.mirrored ? Math.abs(value) : value);
}

function inWords(options: ChartOptions, columns: readonly Column[]): string {
  const parts = options.lines.map((line, i) => {
    const found = summary(
      (columns[i] ?? []).map((v) => (v !== null && options.mirrored ? Math.abs(v) : v)),
    );
    if (found.known === 0) return `${line.label}: no data`;
    const gaps =
      found.known < 1 ? `, unknown for ${Math.round((1 - found.known) * 100)}% of the time` : "";
    return `${line.label}: last ${options.write(found.last)}, mean ${options.write(found.mean)}, from ${options.write(found.min)} to ${options.write(found.max)}${gaps}`;
  });
  return `${parts.join(". ")}.`;
}

function asTable(options: ChartOptions, data: uPlot.AlignedData): HTMLElement {
  const [at, ...columns] = data;
  const rows = thinned(at.length, ROWS).map((i) => [
    dateTime(at[i]),
    ...columns.map((column) => write(options, column[i])),
  ]);
  return table(options.title, ["Time", ...options.lines.map((line) => line.label)], rows, {
    class: "numbers",
  });
}
