// SPDX-License-Identifier: GPL-2.0-only
// One volume: what it does now, and its course with every decision.
import type { Volume, Volumes } from "../api/types";
import { format, type Route } from "../lib/route";
import { volumes } from "../state";
import { coursePart } from "./course";
import { fill, h } from "./dom";
import type { View } from "./view";
import { nowPart } from "./volumenow";

export function volumePage(parent: HTMLElement, route: Route): View {
  const now = nowPart();
  const course = coursePart(route, () => find(route.name)?.volume ?? route.name);
  const gone = h("div");
  parent.append(now.element, gone, course.element);
  const draw = (): void => {
    const found = find(route.name);
    now.element.hidden = found === undefined;
    if (found) {
      now.update(found);
      course.updateNow(found);
      fill(gone);
      delete gone.dataset["why"];
      document.title = `${found.title} – ebbgate`;
    } else {
      const why = unknown(volumes.get(), route.name);
      if (why !== "" && gone.dataset["why"] !== why) {
        gone.dataset["why"] = why;
        fill(gone, absent(route.name, why));
      }
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

function absent(name: string, why: string): HTMLElement {
  return h(
    "div",
    { class: "empty" },
    h("h1", {}, name),
    h("p", {}, why),
    h("a", { href: format("overview") }, "All volumes"),
  );
}

/** Why there is nothing to show; empty while the first answer is on its way. */
function unknown(all: Volumes | null, name: string): string {
  if (all === null) return "";
  if (all.history !== null) return `The history cannot be read: ${all.history}.`;
  if (all.unreadable.includes(name)) return "ebbgated has another version than this server.";
  if (all.daemon_alive === false) return "ebbgated is not running, so there is no current data.";
  return "ebbgated does not know this volume.";
}
