// SPDX-License-Identifier: GPL-2.0-only
// Requests by path (hit, miss, bypass), and bypassed bytes by reason.
import type { Samples, Volume } from "../api/types";
import { bytes, count, ratio, seconds } from "../lib/format";
import { total } from "../lib/series";
import { attribute, fill, fillTable, h, table, text } from "./dom";

interface Share {
  path: string;
  ios: number;
  bytes: number;
}

/** What the probe's names of reasons mean. */
const REASONS: Readonly<Record<string, string>> = {
  sequential: "run longer than the sequential cutoff",
  congested: "cache device briefly overloaded",
};

export interface PathShares {
  element: HTMLElement;
  updateRange: (samples: Samples) => void;
  updateNow: (volume: Volume) => void;
}

export function pathShares(): PathShares {
  const bars = h("div", { class: "shares" });
  const reasons = h("div", { class: "reasons" });
  const rows = h("div");
  let latest: Samples | null = null;
  const updateTable = (): void => {
    const samples = latest;
    if (samples) fillTable(rows, () => asTable(samples));
  };
  const element = h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      {},
      "Cache hits, misses and bypasses",
      h("span", { class: "unit" }, "share of requests in this period"),
    ),
    bars,
    h("h3", {}, "Bypassed in the last second, by reason"),
    reasons,
    h("details", { ontoggle: updateTable }, h("summary", {}, "As a table"), rows),
  );
  return {
    element,
    updateRange: (samples) => {
      const all = shares(samples);
      fill(
        bars,
        ["read", "write"].map((op) =>
          shareBar(
            op,
            all.filter((each) => each.path.startsWith(`${op} `)),
          ),
        ),
      );
      latest = samples;
      updateTable();
    },
    updateNow: (volume) => drawReasons(reasons, volume),
  };
}

function shares(samples: Samples): Share[] {
  return Object.entries(samples.paths).map(([path, columns]) => ({
    path,
    ios: total(columns.ios) ?? 0,
    bytes: total(columns.bytes) ?? 0,
  }));
}

function shareBar(op: string, parts: readonly Share[]): HTMLElement {
  const all = parts.reduce((sum, part) => sum + part.ios, 0);
  if (all === 0) {
    return h(
      "div",
      { class: "share-row" },
      h("span", { class: "share-op" }, op),
      h("span", { class: "hint" }, `no ${op} requests`),
    );
  }
  const sorted = [...parts]
    .filter((part) => part.ios > 0)
    .sort((a, b) => order(a.path) - order(b.path));
  const words = sorted.map((part) => `${name(part.path)} ${ratio(part.ios / all)}`);
  const segments = sorted.map((part) => {
    const segment = h("span", {
      class: "segment",
      "data-path": name(part.path),
      title: `${name(part.path)} ${ratio(part.ios / all)}`,
    });
    segment.style.flexGrow = String(part.ios);
    return segment;
  });
  const labels = sorted.map((part) =>
    h(
      "li",
      {},
      h("span", { class: "swatch block path", "data-path": name(part.path) }),
      `${name(part.path)} ${ratio(part.ios / all)}`,
    ),
  );
  return h(
    "div",
    { class: "share-row" },
    h("span", { class: "share-op" }, op),
    h(
      "div",
      { class: "share-bar", role: "img", "aria-label": `${op}: ${words.join(", ")}` },
      segments,
    ),
    h("ul", { class: "legend" }, labels),
  );
}

function name(path: string): string {
  return path.slice(path.indexOf(" ") + 1);
}

function order(path: string): number {
  const known = ["hit", "writeback", "writethrough", "miss", "bypass"].indexOf(name(path));
  return known < 0 ? 99 : known;
}

function asTable(samples: Samples): HTMLElement {
  const worst = (path: string): number | null =>
    (samples.paths[path]?.p99_s ?? []).reduce<number | null>(
      (a, b) => (b === null ? a : Math.max(a ?? 0, b)),
      null,
    );
  const rows = shares(samples).map((part) => [
    part.path,
    count(part.ios),
    bytes(part.bytes),
    seconds(worst(part.path)),
  ]);
  return table(
    "Cache hits, misses and bypasses",
    ["Path", "Requests", "Bytes", "Highest p99"],
    rows,
    { class: "numbers" },
  );
}

function drawReasons(box: HTMLElement, volume: Volume): void {
  const all = Object.entries(volume.bypass_bytes);
  const most = Math.max(1, ...all.map(([, value]) => value));
  if (all.length === 0) {
    fill(
      box,
      h("p", { class: "hint" }, "Nothing bypassed the cache, or the kernel does not report it."),
    );
    return;
  }
  const known = new Map(
    [...box.querySelectorAll<HTMLElement>("[data-reason]")].map((row) => [
      row.dataset["reason"],
      row,
    ]),
  );
  if (known.size !== all.length) {
    fill(
      box,
      all.map(([reason]) => reasonRow(reason)),
    );
    drawReasons(box, volume);
    return;
  }
  for (const [reason, value] of all) {
    const row = known.get(reason);
    const bar = row?.querySelector<HTMLElement>(".reason-fill");
    const figure = row?.querySelector(".figure");
    if (bar) bar.style.width = `${(value / most) * 100}%`;
    if (figure) text(figure, bytes(value));
    if (row) attribute(row, "data-none", String(value === 0));
  }
}

function reasonRow(reason: string): HTMLElement {
  return h(
    "div",
    { class: "reason", "data-reason": reason },
    h("span", {}, reason.replaceAll("_", " "), h("small", {}, REASONS[reason] ?? "")),
    h("span", { class: "reason-bar", "aria-hidden": "true" }, h("span", { class: "reason-fill" })),
    h("span", { class: "figure" }),
  );
}
