// SPDX-License-Identifier: GPL-2.0-only
// One volume: its current state, and its history with every decision.
import type { Volume, Volumes } from "../api/types";
import { format, type Route } from "../lib/route";
import { volumes } from "../state";
import { historyCharts } from "./historyCharts";
import { fill, h } from "./dom";
import type { View } from "./view";
import { volumeStatus } from "./volumeStatus";

export function volumePage(parent: HTMLElement, route: Route): View {
  const status = volumeStatus();
  const charts = historyCharts(route, () => find(route.name)?.volume ?? route.name);
  const missing = h("div");
  parent.append(status.element, missing, charts.element);
  const draw = (): void => {
    const found = find(route.name);
    status.element.hidden = found === undefined;
    if (found) {
      status.update(found);
      charts.updateNow(found);
      fill(missing);
      delete missing.dataset["why"];
      document.title = `${found.title} – ebbgate`;
    } else {
      const why = whyMissing(volumes.get(), route.name);
      if (why !== "" && missing.dataset["why"] !== why) {
        missing.dataset["why"] = why;
        fill(missing, notFound(route.name, why));
      }
    }
  };
  const stop = volumes.listen(draw);
  return {
    destroy: () => {
      stop();
      charts.destroy();
    },
  };
}

/** Finds a volume by kernel name or title. */
function find(name: string): Volume | undefined {
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
