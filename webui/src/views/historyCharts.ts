// SPDX-License-Identifier: GPL-2.0-only
// The history of one volume: charts over time, with every decision.
import { ApiError, get } from "../api/client";
import type { Actions, Decisions, Samples, Volume } from "../api/types";
import { bytes, rate } from "../lib/format";
import { format, rangeOf, RANGES, type Range, type Route } from "../lib/route";
import { column, negated, recorded } from "../lib/series";
import { askServerNow, generation } from "../state";
import { chart, type ChartView } from "./chart";
import type { Part } from "./bars";
import { fillIfOther, h, segmented, text } from "./dom";
import { sizeCurve } from "./cacheSizes";
import { gapHistogram } from "./gapHistogram";
import { heatMap } from "./heatMap";
import { knobTimeline } from "./knobTimeline";
import { pathShares } from "./pathShares";
import { runCurve } from "./runLengths";
import { errorText } from "./actions";

const POINTS = 600;
const ACTIONS = 500;
// The others change nothing, and there may be many more of them.
const OUTCOMES = ["changed", "manual", "refused", "failed"];
// No tick is slower than 10 s, so a longer pause (as in time_series.py) is no tick.
const PAUSE_S = 30;
const REFRESH_MS = 5_000;

export interface HistoryCharts {
  element: HTMLElement;
  updateNow: (volume: Volume) => void;
  destroy: () => void;
}

interface Charts {
  flow: ChartView;
  dirty: ChartView;
  heat: ReturnType<typeof heatMap>;
  gaps: Part;
  curve: Part;
  sizes: Part;
  split: ReturnType<typeof pathShares>;
  knobs: ReturnType<typeof knobTimeline>;
  state: HTMLElement;
}

/** `name`: the volume's kernel name, which is known only after the first data arrived. */
export function historyCharts(route: Route, name: () => string): HistoryCharts {
  let range = rangeOf(route.query["range"]);
  const charts = makeCharts();
  const shown = (): string => `${range} ${name()}`;
  let reading = "";
  const read = async (): Promise<void> => {
    const mine = shown();
    // A slow server gets no second request for the same.
    if (reading === mine) return;
    reading = mine;
    await readAll(charts, name(), range, () => mine === shown());
    if (reading === mine) reading = "";
  };
  const choice = segmented("Period", Object.keys(RANGES) as Range[], range, (chosen) => {
    range = chosen;
    history.replaceState(null, "", format("volume", route.name, { ...route.query, range }));
    void read();
  });
  const timer = setInterval(() => {
    if (document.visibilityState === "visible") void read();
  }, REFRESH_MS);
  const stop = generation.listen(() => void read());
  const head = h("div", { class: "page-head" }, h("h2", {}, "History"), choice);
  return {
    element: h("div", { class: "history" }, head, charts.state, grid(charts)),
    updateNow: (volume) => {
      for (const part of [charts.gaps, charts.curve, charts.sizes]) part.update(volume);
      charts.split.updateNow(volume);
    },
    destroy: () => {
      clearInterval(timer);
      stop();
      for (const each of [charts.flow, charts.dirty, charts.heat]) each.destroy();
    },
  };
}

function makeCharts(): Charts {
  return {
    flow: flowChart(),
    dirty: dirtyChart(),
    heat: heatMap(),
    gaps: gapHistogram(),
    curve: runCurve(),
    sizes: sizeCurve(),
    split: pathShares(),
    knobs: knobTimeline(),
    state: h("p", { class: "hint", "aria-live": "polite" }),
  };
}

function grid(charts: Charts): HTMLElement {
  const wide = (part: { element: HTMLElement }): HTMLElement =>
    h("div", { class: "wide" }, part.element);
  const parts = [charts.dirty, charts.heat, charts.gaps, charts.curve, charts.sizes];
  const narrow = parts.map((part) => part.element);
  return h(
    "div",
    { class: "charts" },
    wide(charts.flow),
    wide(charts.knobs),
    narrow,
    wide(charts.split),
  );
}

/** `wanted`: whether volume and range are still shown when the answer arrives. */
async function readAll(
  charts: Charts,
  volume: string,
  range: Range,
  wanted: () => boolean,
): Promise<void> {
  const base = `volumes/${encodeURIComponent(volume)}`;
  try {
    const until = Math.ceil(await askServerNow());
    const since = until - RANGES[range];
    const span = { since_unix_s: since, until_unix_s: until };
    const [samples, actions, decisions] = await Promise.all([
      get<Samples>(`${base}/samples`, { ...span, points: POINTS }),
      get<Actions>(`${base}/actions`, { ...span, limit: ACTIONS, outcome: OUTCOMES }),
      get<Decisions>("decisions", { ...span, volume, limit: 200 }),
      charts.heat.read(volume, since, until),
    ]);
    if (!wanted()) return;
    drawFlow(charts.flow, charts.dirty, samples);
    charts.split.updateRange(samples);
    const rows = actions.actions;
    const known = rows.length < ACTIONS ? since : (rows.at(-1)?.at_unix_s ?? since);
    const end = recordedUntil(samples, until);
    charts.knobs.update(rows, decisions.decisions, { since, until, known, end });
    const more = decisions.next_before_id === null ? null : tooMany(volume, decisions);
    // Only if it reads otherwise: a screen reader reads aloud what is filled in.
    fillIfOther(charts.state, more);
  } catch (problem) {
    if (!wanted()) return;
    const gone = problem instanceof ApiError && problem.status === 404;
    text(charts.state, gone ? "" : errorText(problem));
  }
}

/** The end of what is recorded: the last sample, if ebbgated has stopped recording. */
function recordedUntil(samples: Samples, until: number): number {
  const last = recorded(Object.values(samples.columns)) - 1;
  const end = last < 0 ? samples.since_unix_s : (samples.at_unix_s[last] ?? 0) + samples.span_s;
  return until - end > PAUSE_S ? end : until;
}

function tooMany(volume: string, decisions: Decisions): HTMLElement {
  const all = h("a", { href: format("decisions", "", { volume }) }, "Show all");
  const count = decisions.decisions.length;
  return h("span", {}, `Only the newest ${count} decisions of this period are marked. `, all, ".");
}

function flowChart(): ChartView {
  return chart({
    title: "User I/O and write-back",
    unit: "bytes/s; write-back below zero",
    write: rate,
    mirrored: true,
    binary: true,
    lines: [
      { label: "reads", colour: "--read" },
      { label: "writes", colour: "--write" },
      { label: "write-back", colour: "--destage", area: true },
    ],
  });
}

function dirtyChart(): ChartView {
  return chart({
    title: "Dirty data",
    unit: "bytes",
    write: bytes,
    binary: true,
    lines: [{ label: "dirty", colour: "--water", area: true }],
  });
}

function drawFlow(flow: ChartView, dirty: ChartView, samples: Samples): void {
  const length = samples.at_unix_s.length;
  const of = (name: keyof Samples["columns"]) => column(samples.columns, name, length);
  flow.update(samples.at_unix_s, [
    of("read_bytes_per_s"),
    of("write_bytes_per_s"),
    negated(of("destage_bytes_per_s")),
  ]);
  dirty.update(samples.at_unix_s, [of("dirty_bytes")]);
}
