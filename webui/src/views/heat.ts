// SPDX-License-Identifier: GPL-2.0-only
// Heat: where users miss the cache, what is moved into it, and what that has saved.
import type { Volume } from "../api/types";
import { ago } from "../lib/format";
import { format, type Route } from "../lib/route";
import { ageSeconds, volumes } from "../state";
import { sizeCurve } from "./cacheSizes";
import { fill, fillIfOther, h, text } from "./dom";
import { follow } from "./follow";
import { policyLabel } from "./labels";
import { missedByPart } from "./missedBy";
import { missMap, type MissMap } from "./missMap";
import { missTables } from "./missTables";
import { emptyState } from "./overview";
import { promotionPart, sentenceOf } from "./promotion";
import type { View } from "./view";

const LEAD =
  "Where users miss the cache: requests that had to wait for the slow device. The strategy promote_hot moves such data into the cache.";

export function heatPage(parent: HTMLElement, route: Route): View {
  return route.name === "" ? allVolumes(parent) : oneVolume(parent, route.name);
}

function oneVolume(parent: HTMLElement, name: string): View {
  const title = h("h1");
  const about = h("p", { class: "about" });
  const links = h("p");
  const notes = h("div", { class: "notes" });
  const picture = missMap();
  const tables = missTables();
  const owners = missedByPart();
  const moves = promotionPart();
  const sizes = sizeCurve();
  const content = h(
    "div",
    { class: "volume-heat" },
    h("div", { class: "page-head" }, h("div", {}, title, about), links),
    notes,
    picture.element,
    h("div", { class: "charts" }, moves.element, sizes.element),
    tables.element,
    owners.element,
  );
  const { missing, stop } = follow(name, content, (volume) => {
    text(title, `Heat of ${volume.title}`);
    document.title = `Heat of ${volume.title} – ebbgate`;
    text(about, aboutText(volume));
    if (links.childElementCount === 0) {
      const all = h("a", { href: format("heat") }, "All volumes");
      fill(links, all, " · ", h("a", { href: format("volume", volume.volume) }, "Volume"));
    }
    fill(notes, volume.stale && h("p", { class: "remark" }, staleText(volume)));
    for (const part of [picture, moves, sizes, tables, owners]) part.update(volume);
  });
  parent.append(content, missing);
  return {
    destroy: () => {
      stop();
      picture.destroy();
    },
  };
}

function aboutText(volume: Volume): string {
  const name = volume.title === volume.volume ? "" : `${volume.volume} · `;
  return `${name}${volume.kind} · ${volume.mode}${volume.frozen ? ", on hold" : ""} · policy ${policyLabel(volume)}`;
}

function staleText(volume: Volume): string {
  return `Last update ${ago(ageSeconds(volume.at_unix_s))}; the current state is unknown.`;
}

interface Card {
  element: HTMLElement;
  picture: MissMap;
  update: (volume: Volume) => void;
}

function allVolumes(parent: HTMLElement): View {
  const list = h("div", { class: "heat-list" });
  const empty = h("div");
  const cards = new Map<string, Card>();
  parent.append(h("h1", {}, "Heat"), h("p", { class: "lead" }, LEAD), list, empty);
  const stop = volumes.listen((known) => {
    const all = known?.volumes ?? [];
    for (const [name, card] of cards) {
      if (all.some((each) => each.volume === name)) continue;
      card.picture.destroy();
      card.element.remove();
      cards.delete(name);
    }
    for (const volume of all) {
      const found = cards.get(volume.volume) ?? makeCard(volume);
      if (!cards.has(volume.volume)) list.append(found.element);
      cards.set(volume.volume, found);
      found.update(volume);
    }
    fillIfOther(empty, emptyState(known, all.length));
  });
  return {
    destroy: () => {
      stop();
      for (const card of cards.values()) card.picture.destroy();
    },
  };
}

function makeCard(volume: Volume): Card {
  const about = h("p", { class: "about" });
  const sentence = h("p", { class: "sentence" });
  const picture = missMap();
  const link = h("a", { href: format("heat", volume.volume) }, volume.title);
  const element = h(
    "section",
    { class: "card heat-item" },
    h("div", { class: "card-head" }, h("h2", {}, link), about),
    picture.element,
    sentence,
  );
  const update = (now: Volume): void => {
    text(about, aboutText(now));
    text(sentence, movesText(now));
    element.classList.toggle("stale", now.stale);
    picture.update(now);
  };
  return { element, picture, update };
}

function movesText(volume: Volume): string {
  const { promotion } = volume;
  return promotion === null ? "promote_hot is off" : sentenceOf(volume, promotion);
}
