// SPDX-License-Identifier: GPL-2.0-only
// Decisions of all volumes with filters, and the changes that users requested.
import { get } from "../api/client";
import type { Action, Decision, Decisions } from "../api/types";
import { clock, day, knobValue, plural } from "../lib/format";
import { merged } from "../lib/merge";
import { format, type Route } from "../lib/route";
import { askServerNow, decided, generation, titleOf, volumes } from "../state";
import { confirm } from "./dialog";
import { intentHistory } from "./intentHistory";
import { button, fill, h, text } from "./dom";
import { decisionText, openDecision } from "./explanation";
import { filterForm } from "./filters";
import { retry, type Retry } from "./retry";
import type { View } from "./view";
import { errorText, requestChange } from "./actions";

const PAGE = 50;
const KEPT = 1000;

interface List {
  rows: Decision[];
  next: number | null;
  /** Number of the newest read of the first rows; older rows that were asked for before are dropped. */
  reads: number;
  /** Newer ones that arrived meanwhile; shown on request, so that nothing moves under the pointer. */
  waiting: number;
}

export function decisionsPage(parent: HTMLElement, route: Route): View {
  const list: List = { rows: [], next: null, reads: 0, waiting: 0 };
  const requested = intentHistory();
  const filters = filterForm(route.query, () => {
    history.replaceState(null, "", format("decisions", "", filters.query()));
    first.reload();
  });
  const newer = button("", () => first.reload(), { class: "button newer", hidden: true });
  const rows = h("div", { class: "decisions" });
  const more = button("Show older", () => older.reload(), { hidden: true });
  const state = h("p", { class: "hint", role: "status" });
  parent.append(
    h("h1", {}, "Decisions"),
    filters.element,
    newer,
    state,
    rows,
    more,
    requested.element,
  );

  const failed = (problem: unknown): void => text(state, errorText(problem));
  const { first, older } = readers(list, filters.query, failed, () => {
    text(state, shownText(list));
    draw();
  });

  function draw(): void {
    newer.hidden = list.waiting === 0;
    text(newer, `Show ${plural(list.waiting, "newer decision")}`);
    more.hidden = list.next === null || isFull(list);
    fill(rows, list.rows.length === 0 ? empty(filters.query()) : byDay(list.rows));
  }
  const stops = [
    requested.stop,
    generation.listen(first.reload),
    first.stop,
    older.stop,
    decided.listen((decision) => {
      if (!decision || decision.id <= (list.rows[0]?.id ?? 0)) return;
      if (!filters.matches(decision)) return;
      list.waiting += 1;
      newer.hidden = false;
      text(newer, `Show ${plural(list.waiting, "newer decision")}`);
    }),
    volumes.listen(() => {
      filters.update();
      for (const each of rows.querySelectorAll<HTMLElement>("[data-stops]"))
        each.hidden = !isTuned(each.dataset["stops"] ?? "");
    }),
  ];
  return { destroy: () => stops.forEach((stop) => stop()) };
}

/** Reads the first rows, and the ones behind those of the list. */
function readers(
  list: List,
  query: () => Record<string, string>,
  failed: (problem: unknown) => void,
  draw: () => void,
): { first: Retry; older: Retry } {
  const add = (to: readonly Decision[], found: Decisions): void => {
    list.rows = merged(to, found.decisions, KEPT);
    list.next = found.next_before_id;
    draw();
  };
  const first = retry(
    () => {
      list.reads += 1;
      return page(query(), null);
    },
    (found) => {
      list.waiting = 0;
      add([], found);
    },
    failed,
  );
  const older = retry(
    async () => {
      const { reads, next } = list;
      return { reads, next, found: await page(query(), next) };
    },
    ({ reads, next, found }) => {
      if (reads === list.reads && next === list.next) add(list.rows, found);
    },
    failed,
  );
  return { first, older };
}

/** Older rows would not be kept. */
function isFull(list: List): boolean {
  return list.rows.length >= KEPT;
}

function shownText(list: List): string {
  if (list.rows.length === 0) return "";
  const hint = list.next !== null && isFull(list) ? " Narrow the filters to see older ones." : "";
  return `${plural(list.rows.length, "decision")} shown.${hint}`;
}

async function page(
  query: Readonly<Record<string, string>>,
  before: number | null,
): Promise<Decisions> {
  const { since, ...rest } = query;
  const since_unix_s = since ? Math.floor((await askServerNow()) - Number(since)) : "";
  return get<Decisions>("decisions", { ...rest, since_unix_s, before_id: before, limit: PAGE });
}

function byDay(rows: readonly Decision[]): HTMLElement[] {
  const days = new Map<string, Decision[]>();
  for (const row of rows) {
    const name = day(row.at_unix_s);
    const found = days.get(name);
    if (found) found.push(row);
    else days.set(name, [row]);
  }
  return [...days].map(([name, each]) =>
    h(
      "section",
      {},
      h("h2", { class: "day" }, name),
      h("ol", { class: "decision-list" }, each.map(item)),
    ),
  );
}

function item(decision: Decision): HTMLElement {
  return h(
    "li",
    { class: "decision", "data-acted": String(decision.acted) },
    h("span", { class: "when" }, clock(decision.at_unix_s)),
    h("a", { class: "of", href: format("volume", decision.volume) }, titleOf(decision.volume)),
    h("span", { class: "reason-text" }, decision.reason, h("small", {}, decisionText(decision))),
    h(
      "span",
      { class: "row-buttons" },
      button("Why", () => openDecision(decision.id), {
        class: "button small",
        "aria-label": `Why: decision of ${clock(decision.at_unix_s)}`,
      }),
    ),
    decision.actions.length > 0 &&
      h(
        "ul",
        { class: "writes" },
        decision.actions.map(writeItem),
        movesGate(decision) && h("li", {}, stopButton(decision.volume)),
      ),
  );
}

function writeItem(action: Action): HTMLElement {
  return h(
    "li",
    {},
    h("code", {}, action.knob),
    h(
      "span",
      { class: "figure" },
      `${knobValue(action.knob, action.old)} → ${knobValue(action.knob, action.new)}`,
    ),
    h("span", { class: "badge", "data-outcome": action.outcome }, action.outcome.replace("_", " ")),
    action.error && h("span", { class: "error" }, action.error),
  );
}

function movesGate(decision: Decision): boolean {
  return decision.actions.some((action) => action.is_gate && action.outcome === "changed");
}

/** Offered instead of undo: the gate moves many times a minute, and undo would pin one old value. */
function stopButton(volume: string): HTMLElement {
  const stop = button("Stop tuning (advise) …", () => void askStop(volume), {
    class: "button small",
    "aria-label": `Stop tuning ${titleOf(volume)}`,
  });
  stop.dataset["stops"] = volume;
  stop.hidden = !isTuned(volume);
  return stop;
}

function isTuned(volume: string): boolean {
  return (
    volumes.get()?.volumes.some((each) => each.volume === volume && each.mode === "enforce") ??
    false
  );
}

async function askStop(volume: string): Promise<void> {
  const title = titleOf(volume);
  const confirmed = await confirm(
    `Stop tuning ${title}`,
    [
      h(
        "p",
        {},
        `Changes the mode of ${title} to advise: ebbgate restores every setting it has changed there, and then only shows what it would do.`,
      ),
      h("p", { class: "hint" }, "To resume tuning, set the mode to enforce."),
    ],
    "Stop tuning (advise)",
  );
  if (confirmed) await requestChange(`${title}: advise`, "mode", volume, { mode: "advise" });
}

function empty(query: Readonly<Record<string, string>>): HTMLElement {
  const filtered = Object.keys(query).length > 0;
  return h(
    "div",
    { class: "empty" },
    h("h2", {}, filtered ? "No matching decisions" : "No decisions yet"),
    h(
      "p",
      {},
      filtered
        ? "Change or clear the filters."
        : "In the modes advise and enforce, every decision is listed here with its reasons.",
    ),
  );
}
