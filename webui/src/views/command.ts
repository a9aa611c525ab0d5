// SPDX-License-Identifier: GPL-2.0-only
// Text for a terminal or a file, with a button that copies it.
import { button, h, text } from "./dom";

const SHOWN_MS = 2000;

export function command(content: string, label: string): HTMLElement {
  const copy = button(
    "Copy",
    () => {
      void navigator.clipboard.writeText(content).then(() => {
        text(copy, "Copied");
        setTimeout(() => text(copy, "Copy"), SHOWN_MS);
      });
    },
    { class: "button small" },
  );
  return h(
    "div",
    { class: "command" },
    h("pre", { tabindex: 0, role: "region", "aria-label": label }, h("code", {}, content)),
    copy,
  );
}
