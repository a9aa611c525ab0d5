// SPDX-License-Identifier: GPL-2.0-only
// Text for a terminal or a file, with a button that copies it.
import { button, h, text } from "./dom";

const SHOWN_MS = 2000;

export function command(content: string, label: string): HTMLElement {
  const code = h("code", {}, content);
  const select = (): void => {
    getSelection()?.selectAllChildren(code);
    text(copy, "Press Ctrl+C");
  };
  const copied = (): void => {
    text(copy, "Copied");
    setTimeout(() => text(copy, "Copy"), SHOWN_MS);
  };
  const write = (): void => {
    // Over plain HTTP from another machine there is none.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    if (clipboard) clipboard.writeText(content).then(copied, select);
    else select();
  };
  const copy = button("Copy", write, { class: "button small" });
  return h(
    "div",
    { class: "command" },
    h("pre", { tabindex: 0, role: "region", "aria-label": label }, code),
    copy,
  );
}
