// SPDX-License-Identifier: GPL-2.0-only
// Follows one volume for a page, and says why it is missing.
import type { Volume, Volumes } from "../api/types";
import { format } from "../lib/route";
import { volumes } from "../state";
import { fill, h } from "./dom";

export interface Follow {
  /** Empty, or the reason why there is nothing to show. */
  missing: HTMLElement;
  stop: () => void;
}

/** Calls `draw` with each state of the volume; `content` is hidden while there is none. */
export function follow(name: string, content: HTMLElement, draw: (volume: Volume) => void): Follow {
  const missing = h("div");
  const stop = volumes.listen(() => {
    const found = find(name);
    content.hidden = found === undefined;
    if (found) {
      fill(missing);
      delete missing.dataset["why"];
      draw(found);
      return;
    }
    const why = whyMissing(volumes.get(), name);
    if (why === "" || missing.dataset["why"] === why) return;
    missing.dataset["why"] = why;
    fill(missing, notFound(name, why));
  });
  return { missing, stop };
}

/** Finds a volume by kernel name or title. */
export function find(name: string): Volume | undefined {
  const all = volumes.get()?.volumes ?? [];
  return all.find((each) => each.volume === name) ?? all.find((each) => each.title === name);
}

function notFound(name: string, why: string): HTMLElement {
  return h(
    "div",
    { class: "empty" },
    h("h1", {}, name),
    h("p", {}, why),
    h("a", { href: format("overview") }, "All volumes"),
  );
}

/** Why there is nothing to show; empty before the first answer. */
function whyMissing(all: Volumes | null, name: string): string {
  if (all === null) return "";
  if (all.history !== null) return `The history cannot be read: ${all.history}.`;
  if (all.unreadable.includes(name)) return "ebbgated has another version than this server.";
  if (all.daemon_alive === false) return "ebbgated is not running, so there is no current data.";
  return "ebbgated does not know this volume.";
}
