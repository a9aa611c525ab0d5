// SPDX-License-Identifier: GPL-2.0-only
// One volume: what it does now, and its course with every decision.
import { ApiError, get } from "../api/client";
import type { Actions, Decisions, Samples, Volume } from "../api/types";
import { ago, bytes, knobValue, nanoseconds, perSecond, rate, ratio } from "../lib/format";
import { format, rangeOf, RANGES, type Range, type Route } from "../lib/route";
import { column, negated } from "../lib/series";
import { ageSeconds, generation, serverNow, volumes } from "../state";
import { chart, type ChartView } from "./chart";
import { controls } from "./controls";
import { defined } from "./dialog";
import { attribute, fill, h, table, text } from "./dom";
import { proposals } from "./explanation";
import { tideGauge } from "./gauge";
import { heatMap } from "./heatmap";
import { gapHistogram, runCurve } from "./histograms";
import { knobTimeline } from "./knobs";
import { paths } from "./paths";
import type { View } from "./view";
import { explained } from "./wish";
import { forecast, gateWord, HIT_RATIO, load, policyWord, TIME_TO_FULL } from "./words";

const POINTS = 600;
const REFRESH_MS = 5_000;

export function volumePage(parent: HTMLElement, route: Route): View {
  const now = nowPart();
  const course = coursePart(route);
  const gone = h("div");
  parent.append(now.element, gone, course.element);
  const draw = (): void => {
    const found = find(route.name);
    now.element.hidden = found === undefined;
    if (found) {
      now.update(found);
      course.updateNow(found);
      fill(gone);
      document.title = `${found.title} – ebbgate`;
    } else if (volumes.get() !== null && gone.childElementCount === 0) {
      fill(gone, h("div", { class: "empty" }, h("h1", {}, route.name), h("p", {}, "The daemon does not follow such a volume now. "), h("a", { href: format("overview") }, "All volumes")));
    }
  };
  const stop = volumes.listen(draw);
  return {
    destroy: () => {
      stop();
      course.destroy();
    },
  };
}

/** By kernel name, or by what people call it. */
function find(name: string): Volume | undefined {
  const all = volumes.get()?.volumes ?? [];
  return all.find((each) => each.volume === name) ?? all.find((each) => each.title === name);
}

// ---- now -----------------------------------------------------------------------------------------

interface Now {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

const FIGURES: readonly (readonly [string, string, (volume: Volume) => string])[] = [
  ["Regime", "", (v) => v.regime],
  ["Full in", TIME_TO_FULL, (v) => forecast(v, "time_to_full_s")],
  ["Clean in", "", (v) => forecast(v, "time_to_clean_s")],
  ["Hit ratio", HIT_RATIO, (v) => ratio(v.hit_ratio)],
  ["Gate", "", gateWord],
  ["Destage", "", (v) => rate(v.destage_bytes_per_s)],
  ["Reads", "", (v) => `${load(v, "read")} · ${perSecond(v.foreground?.["read"]?.iops)}`],
  ["Writes", "", (v) => `${load(v, "write")} · ${perSecond(v.foreground?.["write"]?.iops)}`],
  ["Wait", "", (v) => `${nanoseconds(v.wait_ns)}${v.wait_learned ? "" : " (default)"}`],
  ["Cache in use", "", (v) => `${ratio(v.in_use_ratio)} of ${bytes(v.cache_bytes)}`],
];

function nowPart(): Now {
  const title = h("h1");
  const about = h("p", { class: "about" });
  const tide = tideGauge();
  const sentence = h("p", { class: "sentence big" });
  const notes = h("div", { class: "notes" });
  const values = FIGURES.map(() => h("dd"));
  const figures = h("dl", { class: "figures wide" }, FIGURES.map(([label, about, ], i) => h("div", {}, h("dt", {}, about ? defined(label, about) : label), values[i])));
  const asked = controls();
  const why = h("div");
  const knobs = h("div");
  const reasons = h("details", { class: "panel" }, h("summary", {}, "Why: what decides now"), why);
  const knobList = h("details", { class: "panel" }, h("summary", {}, "Knobs: value, original, owner"), knobs);
  const element = h(
    "div",
    { class: "now" },
    h("div", { class: "page-head" }, h("div", {}, title, about)),
    h("section", { class: "card hero" }, tide.element, h("div", { class: "hero-side" }, sentence, notes, figures)),
    asked.element,
    reasons,
    knobList,
  );
  const update = (volume: Volume): void => {
    text(title, volume.title);
    const name = volume.title === volume.volume ? "" : `${volume.volume} · `;
    text(about, `${name}${volume.kind} · ${volume.mode}${volume.held ? ", held" : ""} · policy ${policyWord(volume)}`);
    tide.update(volume);
    text(sentence, volume.now);
    remarks(notes, volume);
    FIGURES.forEach(([, , write], i) => {
      const value = values[i];
      if (value) text(value, write(volume));
    });
    element.classList.toggle("stale", volume.stale);
    asked.update(volume);
    quiet(reasons, why, () => proposals(volume.proposals));
    quiet(knobList, knobs, () => knobTable(volume));
  };
  return { element, update };
}

/** Drawn anew only while it is open and nobody is in it. */
function quiet(details: HTMLDetailsElement, box: HTMLElement, make: () => HTMLElement): void {
  if (details.open && !box.contains(document.activeElement)) fill(box, make());
  else if (!details.open && box.childElementCount > 0) fill(box);
}

function remarks(box: HTMLElement, volume: Volume): void {
  const found = [
    volume.stale && `These figures are ${ago(ageSeconds(volume.at_unix_s))}; nobody knows how it is now.`,
    volume.kernel_sleep?.text,
    ...Object.entries(volume.missing).map(([signal, why]) => `Unknown: ${signal} (${why}).`),
    ...Object.entries(volume.lost).filter(([, n]) => n > 0).map(([what, n]) => `Lost: ${n} ${what}.`),
  ].filter((each): each is string => typeof each === "string");
  const key = found.join("\n");
  if (box.dataset["key"] === key) return;
  box.dataset["key"] = key;
  fill(box, found.map((each) => h("p", { class: "remark" }, each)));
}

function knobTable(volume: Volume): HTMLElement {
  const rows = Object.entries(volume.knobs)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, knob]) => [h("code", {}, name), knobValue(name, knob.value), knob.original === null ? "" : knobValue(name, knob.original), h("span", { class: "badge", "data-owner": knob.owner }, knob.owner)]);
  return table("Knobs", ["Knob", "Now", "Original", "Owner"], rows);
}

// ---- the course ----------------------------------------------------------------------------------

interface Course {
  element: HTMLElement;
  updateNow: (volume: Volume) => void;
  destroy: () => void;
}

function coursePart(route: Route): Course {
  let range = rangeOf(route.query["range"]);
  const flow = flowChart();
  const dirty = dirtyChart();
  const heat = heatMap();
  const gaps = gapHistogram();
  const curve = runCurve();
  const split = paths();
  const knobs = knobTimeline();
  const state = h("p", { class: "hint", "aria-live": "polite" });
  const read = async (): Promise<void> => {
    const volume = find(route.name)?.volume ?? route.name;
    const until = Math.ceil(serverNow());
    const since = until - RANGES[range];
    const span = { since_unix_s: since, until_unix_s: until };
    const base = `volumes/${encodeURIComponent(volume)}`;
    try {
      const [samples, actions, decisions] = await Promise.all([
        get<Samples>(`${base}/samples`, { ...span, points: POINTS }),
        get<Actions>(`${base}/actions`, { ...span, limit: 500 }),
        get<Decisions>("decisions", { ...span, volume, limit: 200 }),
        heat.read(volume, since, until),
      ]);
      drawFlow(flow, dirty, samples);
      split.updateRange(samples);
      knobs.update(actions.actions, decisions.decisions, since, until);
      fill(state, decisions.next_before_id !== null && [`Only the newest ${decisions.decisions.length} decisions of this time are marked. `, h("a", { href: format("decisions", "", { volume }) }, "All of them")]);
    } catch (problem) {
      if (!(problem instanceof ApiError && problem.status === 404)) text(state, explained(problem));
    }
  };
  const choice = rangeChoice(range, (chosen) => {
    range = chosen;
    history.replaceState(null, "", format("volume", route.name, { ...route.query, range }));
    void read();
  });
  const timer = setInterval(() => {
    if (document.visibilityState === "visible") void read();
  }, REFRESH_MS);
  const stop = generation.listen(() => void read());
  const element = h("div", { class: "course" }, h("div", { class: "page-head" }, h("h2", {}, "Course"), choice), state, h("div", { class: "charts" }, h("div", { class: "wide" }, flow.element), h("div", { class: "wide" }, knobs.element), dirty.element, heat.element, gaps.element, curve.element, h("div", { class: "wide" }, split.element)));
  return {
    element,
    updateNow: (volume) => {
      gaps.update(volume);
      curve.update(volume);
      split.updateNow(volume);
    },
    destroy: () => {
      clearInterval(timer);
      stop();
      for (const each of [flow, dirty, heat]) each.destroy();
    },
  };
}

function rangeChoice(now: Range, chosen: (range: Range) => void): HTMLElement {
  const buttons = (Object.keys(RANGES) as Range[]).map((range) =>
    h("button", { type: "button", "aria-pressed": String(range === now), onclick: () => {
      for (const each of buttons) attribute(each, "aria-pressed", String(each.textContent === range));
      chosen(range);
    } }, range),
  );
  return h("div", { class: "segmented", role: "group", "aria-label": "Time shown" }, buttons);
}

function flowChart(): ChartView {
  return chart({
    title: "Foreground against destage",
    unit: "bytes/s; destage downwards",
    write: rate,
    mirrored: true,
    binary: true,
    lines: [
      { label: "reads", colour: "--read" },
      { label: "writes", colour: "--write" },
      { label: "destage", colour: "--destage", area: true },
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
  flow.update(samples.at_unix_s, [of("read_bytes_per_s"), of("write_bytes_per_s"), negated(of("destage_bytes_per_s"))]);
  dirty.update(samples.at_unix_s, [of("dirty_bytes")]);
}
