// SPDX-License-Identifier: GPL-2.0-only
// Changes that users requested, with their results.
import type { Intent } from "../api/types";
import { dateTime } from "../lib/format";
import { argsText } from "../lib/intentArgs";
import { intents } from "../state";
import { fill, h, table } from "./dom";

/** Without a volume these are for all of them, others for none. */
const FOR_ALL: readonly string[] = ["hold", "restore"];

/** `stop` removes its listener. */
export function intentHistory(): { element: HTMLElement; stop: () => void } {
  const rows = h("div");
  const draw = (all: readonly Intent[]): void => {
    const none = h("p", { class: "hint" }, "No changes requested yet.");
    fill(rows, all.length === 0 ? none : intentTable(all));
  };
  const stop = intents.listen((all) => {
    if (!rows.contains(document.activeElement)) draw(all);
  });
  rows.addEventListener("focusout", (event) => {
    // What came while the table had the focus.
    if (!(event.relatedTarget instanceof Node && rows.contains(event.relatedTarget)))
      draw(intents.get());
  });
  const summary = h("summary", {}, "Requested changes");
  return { element: h("details", { class: "panel" }, summary, rows), stop };
}

function intentTable(all: readonly Intent[]): HTMLElement {
  const rows = all.map((each) => [
    dateTime(each.at_unix_s),
    each.who,
    each.volume ?? (FOR_ALL.includes(each.kind) ? "all volumes" : ""),
    `${each.kind} ${argsText(each.args)}`,
    each.ok === null ? "accepted; no result yet" : `${each.ok ? "✓" : "✗"} ${each.outcome ?? ""}`,
  ]);
  return table("Requested changes", ["Time", "User", "Volume", "Change", "Result"], rows);
}
