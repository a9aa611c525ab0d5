// SPDX-License-Identifier: GPL-2.0-only
// Cgroups and files whose requests missed the cache.
import type { Attribution, Volume } from "../api/types";
import { count } from "../lib/format";
import { perMinute } from "../lib/missMap";
import { h, refill, table } from "./dom";

const TITLE = "Who missed";
const NOTE =
  "A cgroup is told apart where it has the controller io (systemd: IOAccounting=yes). Direct I/O tells no file. Files have names where the policy names them.";

export interface MissedByPart {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function missedByPart(): MissedByPart {
  const tables = h("div");
  const note = h("p", { class: "hint" }, NOTE);
  const element = h("section", { class: "card missed-by" }, h("h2", {}, TITLE), tables, note);
  let shown = "";
  const update = (volume: Volume): void => {
    const known = volume.attribution;
    element.hidden = !known || known.cgroups.length + known.files.length === 0;
    const key = JSON.stringify(known);
    if (!known || key === shown || tables.contains(document.activeElement)) return;
    shown = key;
    const parts = [
      ownerTable(known, "Cgroup", known.cgroups, known.cgroups_others, "unknown"),
      ownerTable(known, "File", known.files, known.files_others, "unknown: direct I/O, metadata"),
    ];
    refill(tables, h("div", {}, parts));
  };
  return { element, update };
}

function ownerTable(
  known: Attribution,
  what: string,
  owners: Attribution["cgroups"],
  others: number,
  unknown: string,
): HTMLElement | false {
  const rows = owners.map((each) => [
    each.name === "" ? h("i", {}, unknown) : each.name,
    count(perMinute(known, each.reads)),
    count(perMinute(known, each.writes)),
  ]);
  if (others > 0)
    rows.push([h("i", {}, "others, reads and writes"), count(perMinute(known, others)), ""]);
  const head = [what, "Reads/min", "Writes/min"];
  return owners.length > 0 && table(`${what}s that missed most`, head, rows, { class: "numbers" });
}
