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
import { forecast, gateWord, HIT_RATIO, load, policyWord, TIME_TO_FULL } from "./words";

export interface Now {
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

export function nowPart(): Now {
  const title = h("h1");
  const about = h("p", { class: "about" });
  const tide = tideGauge();
  const sentence = h("p", { class: "sentence big" });
  const notes = h("div", { class: "notes" });
  const values = FIGURES.map(() => h("dd"));
  const figures = h(
    "dl",
    { class: "figures wide" },
    FIGURES.map(([label, about], i) =>
      h("div", {}, h("dt", {}, about ? defined(label, about) : label), values[i]),
    ),
  );
  const asked = controls();
  const why = h("div");
  const knobs = h("div");
  const reasons = h("details", { class: "panel" }, h("summary", {}, "Why: what decides now"), why);
  const knobList = h(
    "details",
    { class: "panel" },
    h("summary", {}, "Knobs: value, original, owner"),
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
      h("div", { class: "hero-side" }, sentence, notes, figures),
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
      `${name}${volume.kind} · ${volume.mode}${volume.held ? ", held" : ""} · policy ${policyWord(volume)}`,
    );
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
    volume.stale &&
      `These figures are ${ago(ageSeconds(volume.at_unix_s))}; nobody knows how it is now.`,
    volume.kernel_sleep?.text,
    ...Object.entries(volume.missing).map(([signal, why]) => `Unknown: ${signal} (${why}).`),
    ...Object.entries(volume.lost)
      .filter(([, n]) => n > 0)
      .map(([what, n]) => `Lost: ${n} ${what}.`),
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
  return table("Knobs", ["Knob", "Now", "Original", "Owner"], rows);
}
