// SPDX-License-Identifier: GPL-2.0-only
// Shared by the two histograms of a volume: frame, bars, marks and axis.
import type { Volume } from "../api/types";
import { attribute, fill, fillTable, h, noRows, s, text } from "./dom";

export const WIDTH = 600;
export const HEIGHT = 150;
const TICKS = 5;

export interface Part {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export interface Frame {
  element: HTMLElement;
  plot: HTMLElement;
  svg: SVGSVGElement;
  axis: HTMLElement;
  reading: HTMLElement;
  /** Sets the content of "As a table", which is made only while it is open. */
  setTable: (make: () => HTMLElement) => void;
}

export function frame(title: string, unit: string): Frame {
  const svg = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  const plot = h("div", { class: "bars" }, svg);
  const axis = h("div", { class: "bars-axis", "aria-hidden": "true" });
  const reading = h("p", { class: "reading" });
  const rows = h("div");
  let table = noRows;
  const updateTable = (): void => fillTable(rows, table);
  const setTable = (make: () => HTMLElement): void => {
    table = make;
    updateTable();
  };
  const element = h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, title, h("span", { class: "unit" }, unit)),
    plot,
    axis,
    reading,
    // Without new data, as without a daemon, only this fills a table that is opened.
    h("details", { ontoggle: updateTable }, h("summary", {}, "As a table"), rows),
  );
  const part = { element, plot, svg, axis, reading, setTable };
  empty(part, "No data from ebbgated for this volume.");
  return part;
}

export function bars(
  values: readonly number[],
  from: number,
  end: number,
  className: string,
): SVGElement[] {
  const most = Math.max(...values, Number.MIN_VALUE);
  const width = WIDTH / (end - from);
  return values.slice(from, end).map((value, i) => {
    const height = (value / most) * (HEIGHT - 8);
    return s("rect", {
      class: className,
      x: (i * width + 1).toFixed(1),
      y: (HEIGHT - height).toFixed(1),
      width: Math.max(width - 2, 1).toFixed(1),
      height: height.toFixed(1),
    });
  });
}

/** The label of a mark, on its left side if there is no room on the right. */
export function markLabel(plot: HTMLElement, at: number, label: string): void {
  const found = plot.querySelector<HTMLElement>(".mark-label");
  const element = found ?? h("span", { class: "mark-label", "aria-hidden": "true" });
  if (!found) plot.append(element);
  text(element, label);
  element.style.left = `${at * 100}%`;
  element.dataset["side"] = at > 0.6 ? "left" : "right";
}

/** Removes the label of a mark that is not drawn. */
export function noMarkLabel(plot: HTMLElement): void {
  plot.querySelector(".mark-label")?.remove();
}

export function marker(at: number, className: string): SVGElement {
  const x = (at * WIDTH).toFixed(1);
  return s("line", { class: className, x1: x, x2: x, y1: 0, y2: HEIGHT });
}

/** Labels at evenly spaced bucket edges. */
export function axisLabels(
  box: HTMLElement,
  from: number,
  end: number,
  write: (bucket: number) => string,
): void {
  const step = Math.max(1, Math.ceil((end - from) / TICKS));
  const labels: HTMLElement[] = [];
  for (let bucket = from; bucket <= end; bucket += step) {
    const label = h("span", {}, write(bucket));
    label.style.left = `${((bucket - from) / (end - from)) * 100}%`;
    if (bucket === end) label.dataset["end"] = "";
    labels.push(label);
  }
  fill(box, labels);
}

export function empty(part: Frame, sentence: string): void {
  fill(part.svg);
  noMarkLabel(part.plot);
  fill(part.axis);
  part.setTable(noRows);
  text(part.reading, sentence);
  attribute(part.plot, "aria-label", sentence);
}
