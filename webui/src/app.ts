// SPDX-License-Identifier: GPL-2.0-only
// The dashboard of ebbgate: shows the page that the address names.
import { parse, type Page, type Route } from "./lib/route";
import { start } from "./state";
import { advicePage } from "./views/advice";
import { decisionsPage } from "./views/decisions";
import { doctorPage } from "./views/doctor";
import { heatPage } from "./views/heat";
import { layout } from "./views/layout";
import { overview } from "./views/overview";
import { pinsPage } from "./views/pinsPage";
import { policyPage } from "./views/policy";
import type { View } from "./views/view";
import { volumePage } from "./views/volume";
import { toasts } from "./views/actions";

const PAGES: Readonly<Record<Page, (parent: HTMLElement, route: Route) => View>> = {
  overview,
  volume: volumePage,
  heat: heatPage,
  pins: pinsPage,
  decisions: decisionsPage,
  advice: advicePage,
  policy: policyPage,
  doctor: doctorPage,
};
const TITLES: Readonly<Record<Page, string>> = {
  overview: "Overview",
  volume: "Volume",
  heat: "Heat",
  pins: "Pins",
  decisions: "Decisions",
  advice: "Advice",
  policy: "Policy",
  doctor: "Doctor",
};

let shown: View | null = null;
const frame = layout();

function show(first: boolean): void {
  const route = parse(location.hash);
  shown?.destroy();
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  const page = document.createElement("div");
  page.className = `page page-${route.page}`;
  frame.main.replaceChildren(page);
  document.title = `${TITLES[route.page]} – ebbgate`;
  frame.navigated(route);
  shown = PAGES[route.page](page, route);
  if (first) return;
  // As for a new document: scroll to the top, and let a screen reader start at the page.
  window.scrollTo(0, 0);
  frame.main.focus({ preventScroll: true });
}

document.body.append(toasts());
start();
window.addEventListener("hashchange", () => show(false));
show(true);
