// SPDX-License-Identifier: GPL-2.0-only
// One volume: its current state, and its history with every decision.
import type { Route } from "../lib/route";
import { find, follow } from "./follow";
import { historyCharts } from "./historyCharts";
import type { View } from "./view";
import { volumeStatus } from "./volumeStatus";

export function volumePage(parent: HTMLElement, route: Route): View {
  const status = volumeStatus();
  const charts = historyCharts(route, () => find(route.name)?.volume ?? route.name);
  const { missing, stop } = follow(route.name, status.element, (volume) => {
    status.update(volume);
    charts.updateNow(volume);
    document.title = `${volume.title} – ebbgate`;
  });
  parent.append(status.element, missing, charts.element);
  return {
    destroy: () => {
      stop();
      charts.destroy();
    },
  };
}
