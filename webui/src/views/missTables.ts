// SPDX-License-Identifier: GPL-2.0-only
// Files, relations and parts of a volume that users miss most, and what promote_hot does with them.
import type { Heat, Volume } from "../api/types";
import { bytes, count, plural, ratio, UNKNOWN } from "../lib/format";
import { perMinute } from "../lib/missMap";
import { fill, fillTable, h, refill, table, text } from "./dom";

const MIB = 2 ** 20;
const FILES = "Files with the most misses";
const PARTS = "Hottest parts of 1 MiB";

export interface MissTables {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function missTables(): MissTables {
  const files = h("div");
  const note = h("p", { class: "hint" });
  const chunks = h("div");
  let shown = "";
  let now: Volume | null = null;
  const chunkList = h("details", { ontoggle: drawChunks }, h("summary", {}, PARTS), chunks);
  const title = h("h2");
  const element = h("section", { class: "card miss-tables" }, title, files, note, chunkList);
  function drawChunks(): void {
    const heat = now?.heat;
    if (now && heat) fillTable(chunks, () => chunkTable(heat, now?.mode === "enforce"));
  }
  const update = (volume: Volume): void => {
    now = volume;
    const heat = volume.heat;
    element.hidden = !heat || heat.chunks.length === 0;
    const key = JSON.stringify([heat, volume.mode, volume.layout]);
    if (!heat || key === shown) return;
    const first = shown === "";
    shown = key;
    text(title, heat.groups.length > 0 ? FILES : "Places with the most misses");
    text(note, layoutText(volume));
    if (first) chunkList.open = heat.groups.length === 0;
    if (!files.contains(document.activeElement)) {
      if (heat.groups.length > 0) refill(files, groupTable(heat, volume.mode === "enforce"));
      else fill(files);
    }
    drawChunks();
  };
  return { element, update };
}

function groupTable(heat: Heat, enforced: boolean): HTMLElement {
  const rows = heat.groups.map((group) => [
    group.name === "" ? h("i", {}, "no known file") : fileName(group.name),
    count(perMinute(heat, group.misses)),
    ratio(group.misses / heat.misses),
    group.chunks === null ? UNKNOWN : bytes(group.chunks * MIB),
    bytes(group.moved * MIB),
    bytes(group.pending * MIB),
    bytes(group.held_out * MIB),
  ]);
  const head = ["File", "Misses/min", "Share", "Size", "Moved", chosen(enforced), "Held out"];
  return table(FILES, head, rows, { class: "numbers" });
}

/** A path may be long, and is to leave the figures beside it in view. */
function fileName(name: string): HTMLElement {
  return h("span", { class: "file-name" }, name);
}

function chosen(enforced: boolean): string {
  return enforced ? "To be moved" : "Would be moved";
}

function chunkTable(heat: Heat, enforced: boolean): HTMLElement {
  const states: Readonly<Record<string, string>> = {
    moved: "moved into the cache",
    pending: enforced ? "to be moved" : "would be moved in enforce",
    failed: "not taken by the cache",
    "held out": "held out to compare",
  };
  const named = heat.groups.length > 0;
  const tuned = heat.chunks.some((each) => each.state !== null);
  const rows = heat.chunks.map((each) => [
    `${count(each.chunk)} MiB`,
    count(perMinute(heat, each.misses)),
    ratio(each.misses / heat.misses),
    ...(tuned ? [states[each.state ?? ""] ?? ""] : []),
    ...(named ? [fileName(each.group)] : []),
  ]);
  const head = [
    "Place",
    "Misses/min",
    "Share",
    ...(tuned ? ["State"] : []),
    ...(named ? ["File"] : []),
  ];
  return table(PARTS, head, rows, { class: "numbers" });
}

/** What is known of files, and how to make more known. */
function layoutText(volume: Volume): string {
  const layout = volume.layout;
  if (!layout) {
    return (
      "No file is known: the policy names none. With files of its promote_hot, such as " +
      '{files: "/srv/db/*"}, misses are shown by file, and parts that nobody has missed yet are moved with the rest of a hot file.'
    );
  }
  const parts = [`${plural(layout.files, "file")} known, ${bytes(layout.known_bytes)}`];
  for (const [why, n] of Object.entries(layout.left_out)) parts.push(`${n} left out: ${why}`);
  if (layout.error) parts.push(layout.error);
  return `${parts.join("; ")}.`;
}
