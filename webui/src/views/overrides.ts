// SPDX-License-Identifier: GPL-2.0-only
// The overrides of a volume: a list that can end each one, and a dialog that ends all of them.
import type { Volume } from "../api/types";
import { confirm } from "./dialog";
import { button, fill, h, text } from "./dom";
import { requestChange } from "./actions";
import { overrideLabel } from "./labels";

interface Row {
  /** Identifies the row while its text counts down. */
  key: string;
  text: string;
  label: string;
  /** Completes a short label for screen readers. */
  of?: string;
  end: () => void;
}

export interface Overrides {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function overrideList(): Overrides {
  const element = h("ul", { class: "overrides" });
  let shown = "";
  const update = (volume: Volume): void => {
    const rows = rowsOf(volume);
    const key = JSON.stringify(rows.map((row) => row.key));
    if (key !== shown) {
      shown = key;
      fill(element, rows.map(item));
    }
    rows.forEach((row, i) => {
      const label = element.children[i]?.firstElementChild;
      if (label) text(label, row.text);
    });
  };
  return { element, update };
}

function item(row: Row): HTMLElement {
  return h(
    "li",
    {},
    h("span"),
    button(row.label, row.end, {
      class: "button small",
      "aria-label": row.of && `${row.label} ${row.of}`,
    }),
  );
}

export function rowsOf(volume: Volume): Row[] {
  const set = volume.overrides.map((each) => ({
    key: JSON.stringify([each.kind, each.knob, each.value, each.who]),
    text: overrideLabel(each),
    ...ending(volume, each.kind, each.knob),
  }));
  const manual = Object.entries(volume.knobs)
    .filter(([, knob]) => knob.owner === "manual")
    .map(([knob]) => ({
      key: knob,
      text: `${knob}, changed outside ebbgate and left alone`,
      ...ending(volume, "manual", knob),
    }));
  return [...set, ...manual];
}

/** A drain ends only with a release of everything, which asks first. */
function ending(
  volume: Volume,
  kind: string,
  knob: string | null,
): Pick<Row, "label" | "of" | "end"> {
  if (knob !== null) {
    const end = (): void => void release(volume, { knob }, knob);
    return { label: "Release", of: knob, end };
  }
  if (kind === "hold") return { label: "End hold", end: () => void endHold(volume) };
  return { label: "Release all …", end: () => void askReleaseAll(volume) };
}

export async function endHold(volume: Volume): Promise<void> {
  await requestChange(`${volume.title}: end hold`, "hold", volume.volume, { on: false });
}

export async function askReleaseAll(volume: Volume): Promise<void> {
  const confirmed = await confirm(
    `Release all overrides of ${volume.title}`,
    [
      h("p", {}, "This ends:"),
      h(
        "ul",
        { class: "plain-list" },
        rowsOf(volume).map((row) => h("li", {}, row.text)),
      ),
      h(
        "p",
        { class: "hint" },
        "In mode enforce ebbgate then chooses these settings; otherwise the previous values are restored.",
      ),
    ],
    "Release all",
  );
  if (confirmed) await release(volume, {}, "all");
}

async function release(volume: Volume, args: { knob?: string }, what: string): Promise<void> {
  await requestChange(`${volume.title}: release ${what}`, "release", volume.volume, args);
}
