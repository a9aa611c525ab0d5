// SPDX-License-Identifier: GPL-2.0-only
// Overview: every volume with its dirty data, its load, and what ebbgate does.
import type { Volume, Volumes } from "../api/types";
import { ago, bytes, plural, rate, ratio } from "../lib/format";
import { format, type Route } from "../lib/route";
import { ageSeconds, health, volumes } from "../state";
import { absentList } from "./absent";
import { attribute, button, fillIfOther, h, text } from "./dom";
import { figureList, MAIN_FIGURES } from "./figures";
import { tideGauge } from "./gauge";
import { forecast, gateLabel, loadLabel, policyLabel } from "./labels";
import type { View } from "./view";

// More volumes than this are shown as rows by default.
const CARDS_MAX = 9;
// Sorts bcache2 before bcache10.
const ORDER = new Intl.Collator("en", { numeric: true });

export function overview(parent: HTMLElement, route: Route): View {
  const summary = h("p", { class: "summary" });
  const search = h("input", {
    type: "search",
    id: "find",
    placeholder: "Name, kind or mode",
    value: route.query["q"] ?? "",
  });
  const list = h("div", { class: "volumes" });
  const empty = h("div");
  const absent = absentList();
  let layout = route.query["as"] ?? "";
  const cards = new Map<string, Card>();
  const layoutButton = button("", () => {
    layout = list.dataset["as"] === "rows" ? "cards" : "rows";
    history.replaceState(null, "", format("overview", "", { ...route.query, as: layout }));
    draw(volumes.get());
  });
  const tools = h(
    "div",
    { class: "page-tools" },
    h("label", { for: "find" }, "Find"),
    search,
    layoutButton,
  );
  search.addEventListener("input", () => draw(volumes.get()));
  parent.append(
    h("div", { class: "page-head" }, h("h1", {}, "Overview"), tools),
    summary,
    list,
    empty,
    absent.element,
  );

  function draw(known: Volumes | null): void {
    const all = [...(known?.volumes ?? [])].sort((a, b) => ORDER.compare(a.title, b.title));
    tools.hidden = all.length < 2;
    const as = layout || (all.length > CARDS_MAX ? "rows" : "cards");
    if (list.dataset["as"] !== as) {
      cards.clear();
      list.replaceChildren();
      list.dataset["as"] = as;
    }
    text(layoutButton, as === "rows" ? "Show cards" : "Show rows");
    text(summary, known ? totals(all) : "");
    updateCards(
      list,
      cards,
      all.filter((volume) => matches(volume, search.value)),
      as === "rows",
    );
    fillIfOther(empty, emptyState(known, cards.size));
  }
  const timer = setInterval(() => draw(volumes.get()), 2000);
  const stops = [
    volumes.listen(draw),
    health.listen(absent.update),
    (): void => clearInterval(timer),
  ];
  return { destroy: () => stops.forEach((stop) => stop()) };
}

function matches(volume: Volume, wanted: string): boolean {
  const words = [
    volume.volume,
    volume.title,
    volume.kind,
    volume.mode,
    volume.policy,
    volume.regime,
  ];
  const all = words.join(" ").toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

function totals(all: readonly Volume[]): string {
  if (all.length === 0) return "";
  const enforced = all.filter((volume) => volume.mode === "enforce").length;
  return [
    plural(all.length, "volume"),
    `${enforced} in mode enforce`,
    `${sum(
      all.map((v) => v.dirty_bytes),
      bytes,
    )} dirty`,
    `write-back ${sum(
      all.map((v) => v.destage_bytes_per_s),
      rate,
    )}`,
  ].join(" · ");
}

/** `at least` where some are unknown, a dash where all are. */
function sum(values: readonly (number | null)[], write: (value: number | null) => string): string {
  const known = values.filter((value) => value !== null);
  const total = write(known.length === 0 ? null : known.reduce((a, b) => a + b, 0));
  return known.length > 0 && known.length < values.length ? `at least ${total}` : total;
}

/** Updates cards in place, so that focus and open notes survive. */
function updateCards(
  list: HTMLElement,
  cards: Map<string, Card>,
  wanted: readonly Volume[],
  rows: boolean,
): void {
  const names = new Set(wanted.map((volume) => volume.volume));
  for (const [name, card] of cards) {
    if (names.has(name)) continue;
    card.element.remove();
    cards.delete(name);
  }
  wanted.forEach((volume, index) => {
    let card = cards.get(volume.volume);
    if (!card) {
      card = rows ? rowCard(volume) : fullCard(volume);
      cards.set(volume.volume, card);
    }
    if (list.children[index] !== card.element)
      list.insertBefore(card.element, list.children[index] ?? null);
    card.update(volume);
  });
}

interface Card {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

function heading(volume: Volume): { element: HTMLElement; update: (volume: Volume) => void } {
  const link = h("a", { href: format("volume", volume.volume) }, volume.title);
  const mode = h("span", { class: "badge" });
  const about = h("span", { class: "about" });
  const age = h("span", { class: "age" });
  const element = h(
    "div",
    { class: "card-head" },
    h("h2", {}, link),
    h("div", { class: "badges" }, mode, about, age),
  );
  const update = (now: Volume): void => {
    text(mode, now.frozen ? `${now.mode}, on hold` : now.mode);
    attribute(mode, "data-mode", now.mode);
    text(about, now.policy === "adaptive" ? now.kind : `${now.kind} · ${policyLabel(now)}`);
    text(age, now.stale ? ago(ageSeconds(now.at_unix_s)) : "");
  };
  return { element, update };
}

function fullCard(volume: Volume): Card {
  const head = heading(volume);
  const tide = tideGauge();
  const sentence = h("p", { class: "sentence" });
  const figures = figureList(MAIN_FIGURES, "figures");
  const element = h(
    "article",
    { class: "card volume-card" },
    head.element,
    h("div", { class: "card-body" }, tide.element, figures.element),
    sentence,
  );
  const update = (now: Volume): void => {
    head.update(now);
    tide.update(now);
    element.classList.toggle("stale", now.stale);
    figures.update(now);
    text(sentence, now.now);
  };
  return { element, update };
}

function rowCard(volume: Volume): Card {
  const head = heading(volume);
  const tide = tideGauge(true);
  const dirty = h("span", { class: "row-dirty" });
  const figures = h("span", { class: "row-figures" });
  const sentence = h("p", { class: "sentence" });
  const element = h(
    "article",
    { class: "card volume-row" },
    head.element,
    h("div", { class: "row-tide" }, tide.element, dirty),
    figures,
    sentence,
  );
  const update = (now: Volume): void => {
    head.update(now);
    tide.update(now);
    element.classList.toggle("stale", now.stale);
    text(dirty, `${bytes(now.dirty_bytes)} dirty`);
    const parts = [
      `load: ${loadLabel(now)}`,
      `full in ${forecast(now, "time_to_full_s")}`,
      `hit ratio ${ratio(now.hit_ratio)}`,
      `write-back ${gateLabel(now.gate)}`,
    ];
    text(figures, parts.join(" · "));
    text(sentence, now.now);
  };
  return { element, update };
}

export function emptyState(known: Volumes | null, shown: number): HTMLElement | null {
  if (shown > 0) return null;
  if (known === null) return h("p", { class: "empty" }, "Waiting for data from ebbgated …");
  if (known.history !== null) {
    const what = `The history cannot be read: ${known.history}.`;
    return h("div", { class: "empty" }, h("h2", {}, "No data"), h("p", {}, what));
  }
  if (known.volumes.length > 0) return h("p", { class: "empty" }, "No matching volumes.");
  if (known.daemon_alive === false) return noCurrentData();
  if (known.unreadable.length > 0) {
    const what = `Volumes with a status that cannot be read: ${known.unreadable.join(", ")}.`;
    return h("div", { class: "empty" }, h("h2", {}, "No data"), h("p", {}, what));
  }
  return h(
    "div",
    { class: "empty" },
    h("h2", {}, "No cached volumes found"),
    h(
      "p",
      {},
      "ebbgate works with bcache, dm-cache (lvmcache) and dm-writecache. ",
      known.daemon_alive === null
        ? "Whether ebbgated is running is unknown."
        : "ebbgated is running and has found none.",
    ),
    h(
      "p",
      {},
      "What this machine supports: ",
      h("a", { href: format("doctor") }, "Doctor"),
      ". To set up a cache, see lvm-scripts/README.md.",
    ),
  );
}

/** A daemon that ends in order leaves no volumes, so an empty list says nothing of the machine. */
function noCurrentData(): HTMLElement {
  return h(
    "div",
    { class: "empty" },
    h("h2", {}, "No current data"),
    h("p", {}, "ebbgated is not running, so nothing is known of the cached volumes now."),
    h(
      "p",
      {},
      "What it decided before, with links to the history of each volume: ",
      h("a", { href: format("decisions") }, "Decisions"),
      ".",
    ),
  );
}
