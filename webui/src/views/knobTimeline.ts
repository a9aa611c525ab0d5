// SPDX-License-Identifier: GPL-2.0-only
// The timeline: values of each knob, and decisions as marks that open their explanation.
import type { Action, Decision } from "../api/types";
import { clock, dateTime, knobValue, plural } from "../lib/format";
import * as timeline from "../lib/timeline";
import type { Period } from "../lib/timeline";
import { button, fill, h, refill, table, type Child } from "./dom";
import { openDecision, openDecisions } from "./explanation";

// A mark is 24 px wide; nearer ones are merged.
const MARK_PX = 26;
const LETTER_PX = 6.6;
// A narrower bar would be all edge.
const EDGE_PX = 4;
const KINDS = {
  before: "previous value",
  ebbgate: "written by ebbgate",
  other: "written by somebody else",
  unknown: "unknown",
} as const;
type Kind = keyof typeof KINDS;

export interface KnobTimeline {
  element: HTMLElement;
  update: (
    actions: readonly Action[],
    decisions: readonly Decision[],
    /** `actions` has all writes from `known` to `end`. */
    period: Period,
  ) => void;
}

export function knobTimeline(): KnobTimeline {
  const lanes = h("div", { class: "lanes" });
  const rows = h("div");
  const element = h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      {},
      "Settings and decisions",
      h("span", { class: "unit" }, "select a mark to see why; arrow keys move between marks"),
    ),
    lanes,
    h("details", {}, h("summary", {}, "As a table"), rows),
  );
  return {
    element,
    update: (actions, decisions, period) => {
      const focused = lanes.contains(document.activeElement);
      if (!focused) draw(lanes, actions, decisions, period);
      if (!rows.contains(document.activeElement)) refill(rows, asTable(actions));
    },
  };
}

function draw(
  box: HTMLElement,
  actions: readonly Action[],
  decisions: readonly Decision[],
  period: Period,
): void {
  const { since, until, known, end } = period;
  const writes = actions.map((action) => ({ ...action, at: action.at_unix_s }));
  const found = timeline.lanes(writes, known, end);
  const marks = markLane(box, decisions, since, until);
  if (found.length === 0 && marks === null) {
    fill(box, h("p", { class: "hint" }, "No decisions and no changed settings in this period."));
    return;
  }
  const ends = h(
    "div",
    { class: "lane-ends", "aria-hidden": "true" },
    [since, until].map((at) => h("span", {}, timeLabel(at, until - since))),
  );
  fill(
    box,
    lane("Decisions", marks),
    found.map((each) => {
      const rest = [
        unknown(since, known, "not shown", period),
        unknown(end, until, "not recorded", period),
      ];
      return lane(each.knob, [bars(each, period, trackPx(box)), rest]);
    }),
    ends,
    found.length > 0 && legend(found, since < known || end < until),
    since < known && h("p", { class: "hint" }, newestOnly(actions.length, period)),
  );
}

function newestOnly(count: number, { since, until, known }: Period): string {
  return `Only the newest ${count} writes are shown, since ${timeLabel(known, until - since)}.`;
}

/** Names the colours and lines of the bars that are shown. */
function legend(found: readonly timeline.Lane[], anyUnknown: boolean): HTMLElement {
  const kinds = new Set<Kind>(found.flatMap((each) => each.bars.map(kindOf)));
  if (anyUnknown) kinds.add("unknown");
  const items = (Object.keys(KINDS) as Kind[]).filter((kind) => kinds.has(kind));
  return h(
    "ul",
    { class: "legend" },
    items.map((kind) => {
      const swatch = h("span", { class: "lane-swatch", "data-by": kind, "aria-hidden": "true" });
      return h("li", {}, swatch, KINDS[kind]);
    }),
  );
}

/** The approximate width of a lane without its label. */
function trackPx(box: HTMLElement): number {
  return Math.max(200, box.clientWidth - 160);
}

function timeLabel(at: number, spanS: number): string {
  return spanS > 80_000 ? dateTime(at).slice(5, 16) : clock(at);
}

function lane(label: string, content: Child): HTMLElement {
  return h(
    "div",
    { class: "lane" },
    h("span", { class: "lane-label", title: label }, label),
    h("div", { class: "lane-track" }, content),
  );
}

function kindOf({ strategy }: timeline.Bar): Kind {
  return strategy === null ? "before" : strategy === timeline.MANUAL ? "other" : "ebbgate";
}

function bars(found: timeline.Lane, period: Period, widthPx: number): HTMLElement[] {
  return found.bars.map((bar) => {
    const value = knobValue(found.knob, bar.value);
    const kind = kindOf(bar);
    const who = kind === "ebbgate" ? bar.strategy : KINDS[kind];
    const px = ((bar.until - bar.from) / (period.until - period.since)) * widthPx;
    // A clipped value could be read as another value, so one that does not fit is not shown.
    const fits = px > value.length * LETTER_PX + 8;
    const element = h(
      "span",
      {
        class: "lane-bar",
        "data-by": kind,
        "data-edge": px >= EDGE_PX,
        title: `${value} (${who}), ${dateTime(bar.from)} to ${dateTime(bar.until)}`,
      },
      fits && h("span", { class: "lane-value" }, value),
    );
    return placed(element, bar.from, bar.until, period);
  });
}

/** Hatches a time: an empty track would read as a previous value. */
function unknown(from: number, until: number, why: string, period: Period): HTMLElement | null {
  if (until <= from) return null;
  const title = `${why}, ${dateTime(from)} to ${dateTime(until)}`;
  const element = h("span", { class: "lane-bar", "data-by": "unknown", title });
  return placed(element, from, until, period);
}

function placed(
  element: HTMLElement,
  from: number,
  until: number,
  { since, until: end }: Period,
): HTMLElement {
  element.style.left = `${((from - since) / (end - since)) * 100}%`;
  element.style.width = `${((until - from) / (end - since)) * 100}%`;
  return element;
}

/** Buttons of which one is in the tab order; arrow keys move to the others. */
function markLane(
  box: HTMLElement,
  decisions: readonly Decision[],
  since: number,
  until: number,
): HTMLElement | null {
  const width = trackPx(box);
  const items = decisions.map((each) => ({
    id: each.id,
    at: each.at_unix_s,
    label: each.reason,
    acted: each.acted,
  }));
  const found = timeline.marks(items, since, until, MARK_PX / width);
  if (found.length === 0) return null;
  const buttons = found.map((mark, index) => markButton(mark, index === found.length - 1));
  const row = h("div", { class: "marks", role: "toolbar", "aria-label": "Decisions" }, buttons);
  row.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = buttons[buttons.indexOf(document.activeElement as HTMLButtonElement) + step];
    if (step === 0 || !next) return;
    event.preventDefault();
    for (const each of buttons) each.tabIndex = each === next ? 0 : -1;
    next.focus();
  });
  return row;
}

type Item = { id: number; at: number; label: string; acted: boolean };

function markButton(mark: timeline.Mark<Item>, last: boolean): HTMLButtonElement {
  const [first] = mark.items;
  const many = mark.items.length > 1;
  const label = many
    ? `${plural(mark.items.length, "decision")} since ${clock(first?.at ?? 0)}`
    : `${clock(first?.at ?? 0)}: ${first?.label ?? ""}`;
  const element = button(
    many ? String(Math.min(mark.items.length, 99)) : "",
    () => openDecisions([...mark.items].reverse()),
    {
      class: "mark",
      title: label,
      "aria-label": label,
      tabindex: last ? 0 : -1,
      "data-acted": String(mark.items.some((item) => item.acted)),
    },
  );
  element.style.left = `${mark.at * 100}%`;
  return element;
}

function asTable(actions: readonly Action[]): HTMLElement {
  const rows = actions
    .slice(0, 50)
    .map((action) => [
      dateTime(action.at_unix_s),
      h("code", {}, action.knob),
      `${knobValue(action.knob, action.old)} → ${knobValue(action.knob, action.new)}`,
      action.outcome,
      action.reason,
      action.decision_id === null
        ? ""
        : button("Why", () => openDecision(action.decision_id ?? 0), { class: "button small" }),
    ]);
  return table(
    "Changed settings",
    ["Time", "Setting", "Value", "Result", "Reason", "Decision"],
    rows,
  );
}
