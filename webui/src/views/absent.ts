// SPDX-License-Identifier: GPL-2.0-only
// What is kept for volumes that are not here, with the command that drops it.
import type { AbsentVolume, Health } from "../api/types";
import { dateTime, plural } from "../lib/format";
import { command } from "./command";
import { fill, h } from "./dom";

export interface Absent {
  element: HTMLElement;
  update: (known: Health | null) => void;
}

/** A closed list, hidden where nothing is kept, or where that is not known. */
export function absentList(): Absent {
  const element = h("div");
  // An open list stays open while nothing changes.
  let drawn = "";
  const update = (known: Health | null): void => {
    const { absent, absent_count } = known?.daemon ?? { absent: null, absent_count: null };
    const content = JSON.stringify([absent, absent_count]);
    if (content === drawn) return;
    drawn = content;
    fill(element, absent?.length ? list(absent, absent_count ?? absent.length) : null);
  };
  return { element, update };
}

function list(absent: readonly AbsentVolume[], count: number): HTMLElement {
  const more = count - absent.length;
  return h(
    "details",
    { class: "panel" },
    h("summary", {}, `Settings kept for ${plural(count, "volume")} not found`),
    absent.map(item),
    more > 0 && h("p", { class: "hint" }, `And ${plural(more, "more volume")}.`),
  );
}

function item(each: AbsentVolume): HTMLElement {
  const uuid = each.uuid === null ? "" : ` (uuid ${each.uuid})`;
  const kept = each.kept.map(({ what, since_unix_s }) =>
    since_unix_s === null ? what : `${what}, since ${dateTime(since_unix_s)}`,
  );
  return h(
    "section",
    { "aria-label": `${each.volume}, not found` },
    h("h3", {}, `${each.volume}${uuid}`),
    h("p", {}, `Not applied: ${each.why}. Kept: ${kept.join("; ")}.`),
    h("p", { class: "hint" }, "If the volume is gone for good, drop them:"),
    command(each.command, `Command that drops what is kept for ${each.volume}`),
  );
}
