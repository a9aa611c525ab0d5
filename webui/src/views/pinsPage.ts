// SPDX-License-Identifier: GPL-2.0-only
// Pins: the pinned files of all volumes.
import type { Volume, Volumes } from "../api/types";
import { ago } from "../lib/format";
import { pinTotals } from "../lib/pins";
import { format } from "../lib/route";
import { ageSeconds, volumes } from "../state";
import { button, fillIfOther, h, text } from "./dom";
import { emptyState } from "./overview";
import { askPin, pinList } from "./pins";
import type { View } from "./view";

const LEAD =
  "Files that stay in the cache until they are unpinned or deleted. What the kernel drops from the cache is read again.";

interface Card {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function pinsPage(parent: HTMLElement): View {
  const list = h("div", { class: "pin-cards" });
  const empty = h("div");
  const cards = new Map<string, Card>();
  parent.append(
    h("div", { class: "page-head" }, h("h1", {}, "Pins"), button("Pin a file …", askPin)),
    h("p", { class: "lead" }, LEAD),
    list,
    empty,
  );
  const stop = volumes.listen((known) => {
    const pinned = (known?.volumes ?? []).filter((volume) => volume.pins.length > 0);
    for (const [name, card] of cards) {
      if (pinned.some((volume) => volume.volume === name)) continue;
      card.element.remove();
      cards.delete(name);
    }
    pinned.forEach((volume, index) => {
      const card = cards.get(volume.volume) ?? makeCard(volume);
      cards.set(volume.volume, card);
      if (list.children[index] !== card.element)
        list.insertBefore(card.element, list.children[index] ?? null);
      card.update(volume);
    });
    fillIfOther(empty, pinned.length === 0 ? none(known) : null);
  });
  return { destroy: stop };
}

function makeCard(volume: Volume): Card {
  const about = h("p", { class: "about" });
  const stale = h("p", { class: "remark" });
  const pins = pinList(`Pinned files on ${volume.title}`);
  const link = h("a", { href: format("volume", volume.volume) }, volume.title);
  const element = h(
    "section",
    { class: "card" },
    h("div", { class: "card-head" }, h("h2", {}, link), about),
    stale,
    pins.element,
  );
  const update = (now: Volume): void => {
    text(about, pinTotals(now.pins));
    stale.hidden = !now.stale;
    if (now.stale)
      text(stale, `Last update ${ago(ageSeconds(now.at_unix_s))}; the current state is unknown.`);
    pins.update(now);
  };
  return { element, update };
}

function none(known: Volumes | null): HTMLElement | null {
  const why = emptyState(known, known?.history === null ? known.volumes.length : 0);
  return (
    why ??
    h(
      "div",
      { class: "empty" },
      h("h2", {}, "No pinned files"),
      h("p", {}, "Pin a file that users must never wait for, such as the index of a database."),
    )
  );
}
