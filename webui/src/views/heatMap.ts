// SPDX-License-Identifier: GPL-2.0-only
// The latency heat map: time on the x axis, latency on the y axis, shades for the number of requests.
import { get } from "../api/client";
import type { Latency } from "../api/types";
import { clock, count, dateTime, seconds } from "../lib/format";
import * as heat from "../lib/heat";
import { thinned } from "../lib/series";
import { colour } from "./chart";
import { attribute, fill, fillTable, h, noRows, segmented, table, text } from "./dom";
import { errorText } from "./actions";

const SHADES = 6;
const HEIGHT = 190;
const ROWS = 24;

export interface HeatMap {
  element: HTMLElement;
  read: (volume: string, since: number, until: number) => Promise<void>;
  destroy: () => void;
}

interface Parts {
  canvas: HTMLCanvasElement;
  axisY: HTMLElement;
  axisX: HTMLElement;
  legend: HTMLElement;
  reading: HTMLElement;
  rows: HTMLElement;
}

export function heatMap(): HeatMap {
  const parts = makeParts();
  let op = "read";
  let shown: Latency | null = null;
  let lastRead: [string, number, number] | null = null;
  const redraw = (): void => show(parts, shown, shown?.op ?? op);
  const read = async (volume: string, since: number, until: number): Promise<void> => {
    const mine: typeof lastRead = [volume, since, until];
    lastRead = mine;
    try {
      const found = await get<Latency>(`volumes/${encodeURIComponent(volume)}/latency`, {
        since_unix_s: since,
        until_unix_s: until,
        op,
        points: 300,
      });
      if (mine !== lastRead) return;
      shown = found;
      redraw();
    } catch (problem) {
      if (mine === lastRead) text(parts.reading, errorText(problem));
    }
  };
  const choose = (chosen: string): void => {
    op = chosen;
    if (lastRead) void read(...lastRead);
  };
  const choice = segmented("Operation", ["read", "write"], op, choose, "segmented small");
  const details = h("details", { ontoggle: redraw }, h("summary", {}, "As a table"), parts.rows);
  const element = h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      {},
      "Request latency",
      h("span", { class: "unit" }, "log scale; shade: number of requests"),
    ),
    choice,
    h("div", { class: "heat-box" }, parts.axisY, parts.canvas, parts.axisX),
    parts.legend,
    parts.reading,
    details,
  );
  parts.canvas.addEventListener("pointermove", (event) => showBucket(parts, shown, event));
  parts.canvas.addEventListener("pointerleave", () => showSummary(parts, shown, shown?.op ?? op));
  const resized = new ResizeObserver(redraw);
  resized.observe(parts.canvas);
  window.addEventListener("ebbgate-theme", redraw);
  return {
    element,
    read,
    destroy: () => {
      resized.disconnect();
      window.removeEventListener("ebbgate-theme", redraw);
    },
  };
}

function makeParts(): Parts {
  return {
    canvas: h("canvas", { class: "heat", role: "img" }),
    axisY: h("div", { class: "heat-y", "aria-hidden": "true" }),
    axisX: h("div", { class: "heat-x", "aria-hidden": "true" }),
    legend: h("ul", { class: "legend" }),
    reading: h("p", { class: "reading" }),
    rows: h("div"),
  };
}

function show(parts: Parts, shown: Latency | null, op: string): void {
  const found = shown ? heat.range(shown.counts) : null;
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(parts.canvas.clientWidth * ratio));
  parts.canvas.width = width;
  parts.canvas.height = Math.round(HEIGHT * ratio);
  showSummary(parts, shown, op);
  if (!shown || !found) {
    fill(parts.axisY);
    fill(parts.axisX);
    fill(parts.legend);
    if (shown) fillTable(parts.rows, noRows);
    return;
  }
  paint(parts.canvas, shown, found);
  axes(parts, shown, found);
  legend(parts.legend, found.countMax);
  fillTable(parts.rows, () => asTable(shown));
}

/** The used buckets and one more on each side, so that the edges are visible. */
function rows(found: heat.HeatRange, shown: Latency): [number, number] {
  return [Math.max(0, found.first - 1), Math.min(shown.edges_s.length, found.end + 1)];
}

function paint(canvas: HTMLCanvasElement, shown: Latency, found: heat.HeatRange): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const [from, end] = rows(found, shown);
  const shades = Array.from({ length: SHADES }, (_, i) => colour(`--heat-${i + 1}`));
  const unknown = colour("--hatch");
  const [width, height] = [canvas.width / shown.counts.length, canvas.height / (end - from)];
  shown.counts.forEach((row, i) => {
    const x = Math.floor(i * width);
    const right = Math.ceil((i + 1) * width);
    if (row === null) {
      context.fillStyle = unknown;
      context.fillRect(x, 0, right - x, canvas.height);
      return;
    }
    for (let bucket = from; bucket < end; bucket += 1) {
      const shade = heat.shade(row[bucket] ?? 0, found.countMax, SHADES);
      if (shade === 0) continue;
      context.fillStyle = shades[shade - 1] ?? "";
      const y = Math.floor(canvas.height - (bucket - from + 1) * height);
      context.fillRect(x, y, right - x, Math.ceil(height));
    }
  });
}

function axes(parts: Parts, shown: Latency, found: heat.HeatRange): void {
  const [from, end] = rows(found, shown);
  const step = Math.max(1, Math.ceil((end - from) / 5));
  const labels: HTMLElement[] = [];
  for (let bucket = from; bucket < end; bucket += step) {
    const label = h("span", {}, seconds(shown.edges_s[bucket]));
    label.style.bottom = `${((bucket - from + 1) / (end - from)) * 100}%`;
    labels.push(label);
  }
  fill(parts.axisY, labels);
  const times = thinned(shown.at_unix_s.length, 4).map((i) => {
    const at = shown.at_unix_s[i] ?? 0;
    return h("span", {}, shown.span_s >= 3600 ? dateTime(at).slice(5, 16) : clock(at).slice(0, 5));
  });
  fill(parts.axisX, times);
}

function legend(box: HTMLElement, countMax: number): void {
  const from = heat.shadeFrom(countMax, SHADES);
  const items = from.map((least, i) => {
    const swatch = h("span", { class: "swatch block", "aria-hidden": "true" });
    swatch.style.color = `var(--heat-${i + 1})`;
    return i > 0 && least === from[i - 1] ? null : h("li", {}, swatch, `≥ ${count(least)}`);
  });
  const hole = h("span", { class: "swatch block", "aria-hidden": "true" });
  hole.style.color = "var(--hatch)";
  fill(box, items, h("li", {}, hole, "not recorded"));
}

function showSummary(parts: Parts, shown: Latency | null, op: string): void {
  const all = shown ? heat.sum(shown.counts) : [];
  const total = all.reduce((a, b) => a + b, 0);
  const sentence =
    shown === null
      ? "Loading …"
      : total === 0
        ? `No ${op} requests in this period.`
        : `${count(total)} ${op} requests: p50 ${seconds(heat.percentile(all, shown.edges_s, 0.5))}, p99 ${seconds(heat.percentile(all, shown.edges_s, 0.99))}, p99.9 ${seconds(heat.percentile(all, shown.edges_s, 0.999))}.`;
  text(parts.reading, sentence);
  attribute(parts.canvas, "aria-label", `Request latency. ${sentence}`);
}

function showBucket(parts: Parts, shown: Latency | null, event: PointerEvent): void {
  const found = shown ? heat.range(shown.counts) : null;
  if (!shown || !found) return;
  const box = parts.canvas.getBoundingClientRect();
  const [from, end] = rows(found, shown);
  const column = Math.floor(((event.clientX - box.left) / box.width) * shown.counts.length);
  const bucket = from + Math.floor((1 - (event.clientY - box.top) / box.height) * (end - from));
  const at = dateTime(shown.at_unix_s[column]);
  const row = shown.counts[column];
  const low = bucket > 0 ? seconds(shown.edges_s[bucket - 1]) : "0 s";
  const what = row
    ? `${count(row[bucket] ?? 0)} requests took ${low} to ${seconds(shown.edges_s[bucket])}`
    : "not recorded";
  text(parts.reading, `${at}: ${what}`);
}

function asTable(shown: Latency): HTMLElement {
  const lines = thinned(shown.counts.length, ROWS).map((i) => {
    const row = shown.counts[i] ?? null;
    const at = dateTime(shown.at_unix_s[i]);
    if (row === null) return [at, "not recorded", "", ""];
    const figures = [0.5, 0.99].map((q) => seconds(heat.percentile(row, shown.edges_s, q)));
    return [at, count(row.reduce((a, b) => a + b, 0)), ...figures];
  });
  return table("Request latency", ["Time", "Requests", "p50", "p99"], lines, {
    class: "numbers",
  });
}
