// SPDX-License-Identifier: GPL-2.0-only
// The current state of one volume: gauge, figures, controls, proposals and settings.
import type { Volume } from "../api/types";
import { ago, knobValue } from "../lib/format";
import { format } from "../lib/route";
import { ageSeconds } from "../state";
import { controls } from "./controls";
import { attribute, fill, h, refill, table, text } from "./dom";
import { proposals } from "./explanation";
import { ALL_FIGURES, figureList } from "./figures";
import { tideGauge } from "./gauge";
import { policyLabel } from "./labels";

export interface VolumeStatus {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

const OWNERS =
  "Owner kernel: unchanged. ebbgate: changed by ebbgate, which restores the original. " +
  "manual: changed outside ebbgate and left alone until released.";

export function volumeStatus(): VolumeStatus {
  const title = h("h1");
  const about = h("p", { class: "about" });
  const heat = h("a", {}, "Heat");
  const tide = tideGauge();
  const sentence = h("p", { class: "sentence big" });
  const notes = h("div", { class: "notes" });
  const figures = figureList(ALL_FIGURES, "figures wide");
  const changes = controls();
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
    { class: "volume-status" },
    h("div", { class: "page-head" }, h("div", {}, title, about), heat),
    h(
      "section",
      { class: "card hero" },
      tide.element,
      h("div", { class: "hero-side" }, sentence, notes, figures.element),
    ),
    changes.element,
    reasons,
    knobList,
  );
  const update = (volume: Volume): void => {
    text(title, volume.title);
    const name = volume.title === volume.volume ? "" : `${volume.volume} · `;
    text(
      about,
      `${name}${volume.kind} · ${volume.mode}${volume.frozen ? ", on hold" : ""} · policy ${policyLabel(volume)}`,
    );
    attribute(heat, "href", format("heat", volume.volume));
    tide.update(volume);
    text(sentence, volume.now);
    remarks(notes, volume);
    figures.update(volume);
    element.classList.toggle("stale", volume.stale);
    changes.update(volume);
    refresh(reasons, why, () => proposals(volume.proposals));
    refresh(knobList, knobs, () => knobTable(volume));
  };
  return { element, update };
}

/** Redraws the content while it is open and has no focus inside. */
function refresh(details: HTMLDetailsElement, box: HTMLElement, make: () => HTMLElement): void {
  if (details.open && !box.contains(document.activeElement)) refill(box, make());
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
      .map(([what, n]) => `Dropped by the probe: ${n} ${what} ${n === 1 ? "record" : "records"}.`),
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
  return h(
    "div",
    {},
    h("p", { class: "hint" }, OWNERS),
    table("Settings", ["Setting", "Now", "Original", "Owner"], rows),
  );
}
