// SPDX-License-Identifier: GPL-2.0-only
// The filters of the Decisions page.
import type { Decision } from "../api/types";
import { matches } from "../lib/decisions";
import { volumes } from "../state";
import { button, fill, h, uid } from "./dom";

const OUTCOMES = ["changed", "unchanged", "refused", "manual", "too_soon", "failed"];
const LABELS: Readonly<Record<string, string>> = {
  volume: "Volume",
  knob: "Setting",
  strategy: "Strategy",
  outcome: "Result",
  since: "Period",
};
const TIMES: readonly (readonly [string, string])[] = [
  ["", "all"],
  ["3600", "last hour"],
  ["86400", "last day"],
  ["604800", "last week"],
];

export interface Filters {
  element: HTMLElement;
  query: () => Record<string, string>;
  matches: (decision: Decision) => boolean;
  /** Offers the volumes and knobs that are known by now. */
  update: () => void;
}

export function filterForm(start: Readonly<Record<string, string>>, changed: () => void): Filters {
  const selects: Record<string, HTMLSelectElement> = {};
  const fields = Object.entries(LABELS).map(([name, label]) => {
    const id = uid(name);
    const element = h("select", { id, name, onchange: changed });
    selects[name] = element;
    return h("div", { class: "field" }, h("label", { for: id }, label), element);
  });
  const query = (): Record<string, string> =>
    Object.fromEntries(
      Object.entries(selects)
        .map(([name, element]): [string, string] => [name, element.value])
        .filter(([, value]) => value !== ""),
    );
  let before = "";
  const names = (): void => {
    const choices = known();
    const key = JSON.stringify(choices);
    if (key === before) return;
    const chosen = before === "" ? start : query();
    before = key;
    for (const [name, element] of Object.entries(selects))
      options(element, choices[name] ?? [], chosen[name] ?? "");
  };
  names();
  const clear = button("Clear filters", () => {
    for (const element of Object.values(selects)) element.value = "";
    changed();
  });
  return {
    element: h(
      "form",
      {
        class: "filters",
        "aria-label": "Filter",
        onsubmit: (event: Event) => event.preventDefault(),
      },
      fields,
      clear,
    ),
    query,
    update: names,
    matches: (decision) => matches(decision, query()),
  };
}

function options(
  element: HTMLSelectElement,
  choices: readonly (readonly [string, string])[],
  chosen: string,
): void {
  const all = choices.some(([value]) => value === chosen)
    ? choices
    : [...choices, [chosen, chosen] as const];
  fill(
    element,
    all.map(([value, label]) => h("option", { value, selected: value === chosen }, label)),
  );
}

function known(): Record<string, (readonly [string, string])[]> {
  const all = volumes.get()?.volumes ?? [];
  const some = (
    names: Iterable<string>,
    word = (name: string) => name,
  ): (readonly [string, string])[] => [
    ["", "any"],
    ...[...new Set(names)].sort().map((name) => [name, word(name)] as const),
  ];
  return {
    volume: [["", "any"], ...all.map((each) => [each.volume, each.title] as const)],
    knob: some(all.flatMap((each) => Object.keys(each.knobs))),
    strategy: some([
      "idle_destage",
      "stream_bypass",
      "override",
      "drain",
      "rollback_guard",
      ...all.flatMap((each) => each.proposals.map((one) => one.strategy)),
    ]),
    outcome: some(OUTCOMES, (name) => name.replace("_", " ")),
    since: [...TIMES],
  };
}
