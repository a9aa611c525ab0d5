// SPDX-License-Identifier: GPL-2.0-only
// Pinned files of a volume, each with a button that ends its pin.
import type { Pin, Volume } from "../api/types";
import { bytes, ratio } from "../lib/format";
import { requestChange } from "./actions";
import { button, fill, h, text } from "./dom";

export interface Pins {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function pinList(): Pins {
  const element = h("ul", { class: "overrides", "aria-label": "Pinned files" });
  let shown = "";
  const update = (volume: Volume): void => {
    const key = JSON.stringify(volume.pins.map((pin) => pin.id));
    if (key !== shown) {
      shown = key;
      fill(
        element,
        volume.pins.map((pin) => item(volume, pin)),
      );
    }
    volume.pins.forEach((pin, i) => {
      const label = element.children[i]?.firstElementChild;
      if (label) text(label, pinLabel(pin));
    });
  };
  return { element, update };
}

function item(volume: Volume, pin: Pin): HTMLElement {
  const title = `${volume.title}: unpin ${pin.path}`;
  const unpin = button("Unpin", () => void requestChange(title, "unpin", null, { pin: pin.id }), {
    class: "button small",
    "aria-label": `Unpin ${pin.path}`,
  });
  return h("li", {}, h("span"), unpin);
}

function pinLabel(pin: Pin): string {
  const share = pin.cache_ratio === null ? "" : `, ${ratio(pin.cache_ratio)} of the cache`;
  const size = pin.size_bytes === null ? "" : `, ${bytes(pin.size_bytes)}${share}`;
  const hits = pin.hit_ratio === null ? "" : `, ${ratio(pin.hit_ratio)} of touches hit`;
  const why = pin.why === "" ? "" : `: ${pin.why}`;
  return `Pinned: ${pin.path}, ${pin.state.replace("_", " ")}${size}${hits}${why}`;
}
