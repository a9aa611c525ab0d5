// SPDX-License-Identifier: GPL-2.0-only
// Pinned files of a volume: a list that can end each pin, and the dialogs that pin and unpin.
import type { Pin, Volume } from "../api/types";
import { pinFigures, stateLabel } from "../lib/pins";
import { requestChange } from "./actions";
import { confirm } from "./dialog";
import { attribute, button, h, text, uid } from "./dom";
import { form, pathField } from "./form";

export interface Pins {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

interface Row {
  element: HTMLElement;
  update: (volume: Volume, pin: Pin) => void;
}

/** The pins of a volume under a heading; hidden without any. */
export function pinGroup(): Pins {
  const id = uid("pins");
  const list = pinList("Pinned files");
  const element = h(
    "section",
    { class: "pin-group", "aria-labelledby": id },
    h("h2", { id }, "Pinned files"),
    list.element,
  );
  const update = (volume: Volume): void => {
    element.hidden = volume.pins.length === 0;
    list.update(volume);
  };
  return { element, update };
}

export function pinList(label: string): Pins {
  const element = h("ul", { class: "pins", "aria-label": label });
  const rows = new Map<number, Row>();
  // Rows stay in place, so that the focus survives.
  const update = (volume: Volume): void => {
    for (const [id, row] of rows) {
      if (volume.pins.some((pin) => pin.id === id)) continue;
      row.element.remove();
      rows.delete(id);
    }
    volume.pins.forEach((pin, index) => {
      const row = rows.get(pin.id) ?? makeRow(volume, pin);
      rows.set(pin.id, row);
      if (element.children[index] !== row.element)
        element.insertBefore(row.element, element.children[index] ?? null);
      row.update(volume, pin);
    });
  };
  return { element, update };
}

function makeRow(volume: Volume, pin: Pin): Row {
  let now = { volume, pin };
  const state = h("span", { class: "badge" });
  const figures = h("p", { class: "hint" });
  const why = h("p", { class: "why" });
  const unpin = button("Unpin …", () => void askUnpin(now.volume, now.pin), {
    class: "button small",
    "aria-label": `Unpin … ${pin.path}`,
  });
  const element = h(
    "li",
    {},
    h("div", {}, h("p", {}, h("code", {}, pin.path), " ", state), why, figures),
    unpin,
  );
  return {
    element,
    update: (volume, pin) => {
      now = { volume, pin };
      text(state, stateLabel(pin.state));
      attribute(state, "data-pin", pin.state);
      text(figures, pinFigures(pin));
      text(why, pin.why);
    },
  };
}

export function askPin(): void {
  const path = pathField(
    "Its full path on the server. It is read into the cache of its volume and kept there until you unpin it or it is deleted, also across restarts; the file is not changed. The pinned files of a volume may take a quarter of its cache, unless the settings of ebbgate name another share.",
  );
  form("Pin a file", path.content, "Pin", () => {
    const wrong = path.problem();
    if (wrong !== null) return wrong;
    void requestChange(`Pin ${path.value()}`, "pin", null, { path: path.value() });
    return null;
  });
}

async function askUnpin(volume: Volume, pin: Pin): Promise<void> {
  const confirmed = await confirm(
    `Unpin a file on ${volume.title}`,
    [
      h("p", {}, h("code", {}, pin.path)),
      h(
        "p",
        { class: "hint" },
        "ebbgate no longer keeps it in the cache. What is there now stays until the kernel needs the room.",
      ),
    ],
    "Unpin",
  );
  // The number: a long path is shortened here.
  if (confirmed)
    await requestChange(`${volume.title}: unpin ${pin.path}`, "unpin", null, { pin: pin.id });
}
