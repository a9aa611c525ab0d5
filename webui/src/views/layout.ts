// SPDX-License-Identifier: GPL-2.0-only
// The frame of every page: name, navigation, theme, token and problems.
import { token } from "../api/client";
import type { Health, Volumes } from "../api/types";
import { ago, plural } from "../lib/format";
import { Kept } from "../lib/kept";
import { format, type Page, type Route } from "../lib/route";
import { choiceOf, isDark, next, type Choice } from "../lib/theme";
import { ageSeconds, connection, health, receivedMs, volumes } from "../state";
import { attribute, button, fill, h, s, text } from "./dom";
import { askToken } from "./token";

const NAVIGATION: readonly (readonly [Page, string])[] = [
  ["overview", "Overview"],
  ["heat", "Heat"],
  ["pins", "Pins"],
  ["decisions", "Decisions"],
  ["advice", "Advice"],
  ["policy", "Policy"],
  ["doctor", "Doctor"],
];
const THEME_KEY = "ebbgate-theme";
const kept = new Kept(() => localStorage);
// The stream sends new data twice a second; data older than this, or than a few ticks, is marked.
const STALE_S = 10;
const STALE_TICKS = 3;

export interface Layout {
  main: HTMLElement;
  navigated: (route: Route) => void;
}

export function layout(): Layout {
  const main = h("main", { id: "main", tabindex: -1 });
  const links = NAVIGATION.map(([page, label]) =>
    h("a", { href: format(page), "data-page": page }, label),
  );
  const skip = h(
    "a",
    {
      class: "skip",
      href: "#main",
      onclick: (event: Event) => {
        event.preventDefault();
        main.focus();
      },
    },
    "Skip to content",
  );
  document.body.replaceChildren(
    skip,
    h(
      "header",
      { class: "top" },
      h("a", { class: "brand", href: format("overview") }, mark(), "ebbgate"),
      h("nav", { "aria-label": "Pages" }, links),
      h("div", { class: "tools" }, pulse(), tokenButton(), themeButton()),
    ),
    banners(),
    main,
    h("footer", { class: "bottom" }, footer()),
  );
  return {
    main,
    navigated: (route) => {
      const here = route.page === "volume" ? "overview" : route.page;
      for (const link of links) {
        attribute(link, "aria-current", link.dataset["page"] === here ? "page" : null);
      }
    },
  };
}

function mark(): SVGElement {
  return s(
    "svg",
    { class: "mark", viewBox: "0 0 32 32", "aria-hidden": "true" },
    s("path", { class: "mark-water", d: "M2 19c4.7-4 9.3-4 14 0s9.300 4 14 0v11H2z" }),
    s("path", { class: "mark-line", d: "M2 9h28" }),
  );
}

/** Shows that the data is live, or how old it is. */
function pulse(): HTMLElement {
  const element = h("span", { class: "pulse" });
  const draw = (): void => {
    const known = receivedMs.get() > 0 && volumes.get()?.history === null;
    const stopped = health.get()?.daemon.alive === false;
    const newest = Math.min(...(volumes.get()?.volumes ?? []).map((v) => ageSeconds(v.at_unix_s)));
    // A daemon that ends in order leaves no volumes: then an answer without any says nothing of now.
    const age = Number.isFinite(newest)
      ? newest
      : known && !stopped
        ? (Date.now() - receivedMs.get()) / 1000
        : null;
    const lost = ["lost", "locked"].includes(connection.get());
    const limit = Math.max(STALE_S, STALE_TICKS * (health.get()?.daemon.tick_s ?? 0));
    const live = known && !lost && !stopped && (age ?? Infinity) < limit;
    attribute(element, "data-state", lost ? "lost" : live ? "live" : "stale");
    const nothing = stopped ? "no data" : "waiting";
    text(element, live ? "live" : age === null ? nothing : ago(age));
  };
  connection.listen(draw);
  volumes.listen(draw);
  health.listen(draw);
  setInterval(draw, 1000);
  return element;
}

function tokenButton(): HTMLElement {
  const element = button("", () => void askToken().then(draw), { class: "button quiet" });
  function draw(): void {
    const unlocked = token.get() !== "";
    fill(element, h("span", { class: "wordy" }, "Changes: "), unlocked ? "allowed" : "locked");
    attribute(element, "aria-label", `Changes: ${unlocked ? "allowed" : "locked"}`);
    attribute(element, "data-unlocked", String(unlocked));
  }
  window.addEventListener("ebbgate-token", draw);
  draw();
  return element;
}

function themeButton(): HTMLElement {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let choice: Choice = choiceOf(kept.get(THEME_KEY));
  const icon = h("span", { "aria-hidden": "true" });
  const element = button(icon, press, { class: "icon-button" });
  function press(): void {
    choice = next(choice, system.matches);
    kept.set(THEME_KEY, choice);
    draw();
  }
  function draw(): void {
    document.documentElement.dataset["theme"] = isDark(choice, system.matches) ? "dark" : "light";
    text(icon, choice === "auto" ? "◐" : choice === "dark" ? "●" : "○");
    attribute(element, "aria-label", `Theme: ${choice === "auto" ? "system" : choice}`);
    window.dispatchEvent(new Event("ebbgate-theme"));
  }
  system.addEventListener("change", draw);
  draw();
  return element;
}

function banners(): HTMLElement {
  const element = h("div", { class: "banners", role: "status", "aria-live": "polite" });
  let before = "";
  const draw = (): void => {
    const found = problems(connection.get(), health.get(), volumes.get());
    const key = JSON.stringify(found);
    if (key === before) return;
    before = key;
    fill(
      element,
      found.map(([title, what]) => h("p", { class: "banner" }, h("b", {}, title), " ", what)),
    );
  };
  connection.listen(draw);
  health.listen(draw);
  volumes.listen(draw);
  return element;
}

/** Current problems, worst first. Without a server nothing else is known. */
function problems(
  state: string,
  known: Health | null,
  all: Volumes | null,
): (readonly [string, string])[] {
  if (state === "locked") {
    return [
      [
        "Token required.",
        "This server shows no data without it. Enter it with the Changes button above.",
      ],
    ];
  }
  if (state === "lost") {
    return [["Connection lost.", "Retrying. The page shows the last data received."]];
  }
  if (known === null) return [];
  const found: (readonly [string, string])[] = [];
  if (!known.history.ok) {
    found.push(["The history cannot be read:", `${known.history.why ?? "reason unknown"}.`]);
  } else if (known.daemon.alive === false) {
    // The pulse tells the age; here it would be read aloud again and again.
    const last = all?.volumes.length ? "; the page shows the last data" : "";
    found.push([
      "ebbgated is not running.",
      `Nothing is measured or changed${last}. Start it with: systemctl start ebbgated`,
    ]);
  }
  if (known.daemon.alive !== false && all?.unreadable.length) {
    found.push([
      `The status of ${plural(all.unreadable.length, "volume")} cannot be read.`,
      "ebbgated has another version than this server. Install both from the same release and restart both.",
    ]);
  }
  if (!known.intents.ok && known.daemon.alive !== false) {
    found.push(["Changes are not possible:", `${known.intents.why ?? "reason unknown"}.`]);
  }
  for (const error of known.daemon.alive === true ? known.daemon.errors : [])
    found.push(["ebbgated:", error]);
  return found;
}

function footer(): HTMLElement {
  const element = h("span");
  health.listen((known) => {
    const daemon = known?.daemon.alive === true ? `, ebbgated ${known.daemon.version ?? ""}` : "";
    text(element, known ? `ebbgate-web ${known.version}${daemon}` : "ebbgate-web");
  });
  return element;
}
