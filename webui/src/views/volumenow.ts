// SPDX-License-Identifier: GPL-2.0-only
// One volume as it is now: gauge, sentence, figures, what may be asked for, and why.
import type { Volume } from "../api/types";
import { ago, bytes, knobValue, nanoseconds, perSecond, rate, ratio } from "../lib/format";
import { ageSeconds } from "../state";
import { controls } from "./controls";
import { defined } from "./dialog";
import { fill, h, table, text } from "./dom";
import { proposals } from "./explanation";
import { tideGauge } from "./gauge";
import {
  forecast,
  GATE,
  gateWord,
  HIT_RATIO,
  IDLE_WAIT,
  load,
  LOAD,
  loadWord,
  policyWord,
  TIME_TO_CLEAN,
  TIME_TO_FULL,
} from "./words";

export interface Now {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

const FIGURES: readonly (readonly [string, string, (volume: Volume) => string])[] = [
  ["Load", LOAD, loadWord],
  ["Full in", TIME_TO_FULL, (v) => forecast(v, "time_to_full_s")],
  ["Clean in", TIME_TO_CLEAN, (v) => forecast(v, "time_to_clean_s")],
  ["Hit ratio", HIT_RATIO, (v) => ratio(v.hit_ratio)],
  ["Write-back", GATE, gateWord],
  ["Write-back rate", "", (v) => rate(v.destage_bytes_per_s)],
  ["Reads", "", (v) => `${load(v, "read")} · ${perSecond(v.foreground?.["read"]?.iops)}`],
  ["Writes", "", (v) => `${load(v, "write")} · ${perSecond(v.foreground?.["write"]?.iops)}`],
  ["Idle wait", IDLE_WAIT, (v) => `${nanoseconds(v.wait_ns)}${v.wait_learned ? "" : " (default)"}`],
  ["Cache in use", "", (v) => `${ratio(v.in_use_ratio)} of ${bytes(v.cache_bytes)}`],
];

export function nowPart(): Now {
  const title = h("h1");
  const about = h("p", { class: "about" });
  const tide = tideGauge();
  const sentence = h("p", { class: "sentence big" });
  const notes = h("div", { class: "notes" });
  const figures = figureList();
  const asked = controls();
  const why = h("div");
  const knobs = h("div");
  const reasons = h(
    "details",
    { class: "panel" },
    h("summary", {}, "Why: current proposals of each strategy"),
    why,
  );
  const knobList = h(
    "details",
    { class: "panel" },
    h("summary", {}, "Settings: value, original, owner"),
    knobs,
  );
  const element = h(
    "div",
    { class: "now" },
    h("div", { class: "page-head" }, h("div", {}, title, about)),
    h(
      "section",
      { class: "card hero" },
      tide.element,
      h("div", { class: "hero-side" }, sentence, notes, figures.element),
    ),
    asked.element,
    reasons,
    knobList,
  );
  const update = (volume: Volume): void => {
    text(title, volume.title);
    const name = volume.title === volume.volume ? "" : `${volume.volume} · `;
    text(
      about,
      `${name}${volume.kind} · ${volume.mode}${volume.held ? ", on hold" : ""} · policy ${policyWord(volume)}`,
    );
    tide.update(volume);
    text(sentence, volume.now);
    remarks(notes, volume);
    figures.update(volume);
    element.classList.toggle("stale", volume.stale);
    asked.update(volume);
    quiet(reasons, why, () => proposals(volume.proposals));
    quiet(knobList, knobs, () => knobTable(volume));
  };
  return { element, update };
}

function figureList(): Now {
  const values = FIGURES.map(() => h("dd"));
  const element = h(
    "dl",
    { class: "figures wide" },
    FIGURES.map(([label, about], i) =>
      h("div", {}, h("dt", {}, about ? defined(label, about) : label), values[i]),
    ),
  );
  const update = (volume: Volume): void =>
    FIGURES.forEach(([, , write], i) => {
      const value = values[i];
      if (value) text(value, write(volume));
    });
  return { element, update };
}

/** Drawn anew only while it is open and nobody is in it. */
function quiet(details: HTMLDetailsElement, box: HTMLElement, make: () => HTMLElement): void {
  if (details.open && !box.contains(document.activeElement)) fill(box, make());
  else if (!details.open && box.childElementCount > 0) fill(box);
}

function remarks(box: HTMLElement, volume: Volume): void {
  const found = [
    volume.stale &&
      `Last update ${ago(ageSeconds(volume.at_unix_s))}; the current state is unknown.`,
    volume.kernel_sleep?.text,
    ...Object.entries(volume.missing).map(([signal, why]) => `Unknown: ${signal} (${why}).`),
    ...Object.entries(volume.lost)
      .filter(([, n]) => n > 0)
      .map(([what, n]) => `Not recorded: ${n} ${what}.`),
  ].filter((each): each is string => typeof each === "string");
  const key = found.join("\n");
  if (box.dataset["key"] === key) return;
  box.dataset["key"] = key;
  fill(
    box,
    found.map((each) => h("p", { class: "remark" }, each)),
  );
}

function knobTable(volume: Volume): HTMLElement {
  const rows = Object.entries(volume.knobs)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, knob]) => [
      h("code", {}, name),
      knobValue(name, knob.value),
      knob.original === null ? "" : knobValue(name, knob.original),
      h("span", { class: "badge", "data-owner": knob.owner }, knob.owner),
    ]);
  return table("Settings", ["Setting", "Now", "Original", "Owner"], rows);
}
