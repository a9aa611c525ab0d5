// SPDX-License-Identifier: GPL-2.0-only
// Dialogs and notes. The browser's own <dialog> keeps the focus inside, ends with Escape and gives the
// focus back to what opened it.
import { button, h, uid, type Child } from "./dom";

export interface Dialog {
  body: HTMLElement;
  close: () => void;
}

/** Opens at once. `actions`: buttons at its foot, beside the one that closes it. */
export function open(
  title: string,
  content: Child,
  actions: readonly HTMLElement[] = [],
  closed: () => void = () => undefined,
): Dialog {
  const id = uid("dialog");
  const close = (): void => element.close();
  const body = h("div", { class: "dialog-body", tabindex: -1 }, content);
  const element = h(
    "dialog",
    { class: "dialog", "aria-labelledby": id },
    h(
      "div",
      { class: "dialog-head" },
      h("h2", { id }, title),
      button("×", close, { class: "icon-button", "aria-label": "Close" }),
    ),
    body,
    actions.length > 0 && h("div", { class: "dialog-foot" }, actions),
  );
  // A press on the backdrop is one on the element itself, outside of its content.
  element.addEventListener("click", (event) => {
    if (event.target === element) close();
  });
  element.addEventListener("close", () => {
    element.remove();
    closed();
  });
  document.body.append(element);
  element.showModal();
  return { body, close };
}

/** Asks; resolves with true once, and only once, the person says yes. */
export function confirm(title: string, content: Child, yes: string): Promise<boolean> {
  return new Promise((resolve) => {
    let said = false;
    const dialog = open(
      title,
      content,
      [
        button("Cancel", () => dialog.close()),
        button(
          yes,
          () => {
            said = true;
            dialog.close();
          },
          { class: "button primary" },
        ),
      ],
      () => resolve(said),
    );
  });
}

/** A word with a small sign behind it that opens its definition, by pointer and by keyboard. */
export function defined(label: string, definition: string): HTMLElement {
  const note = h(
    "div",
    { class: "note", popover: "auto", role: "note" },
    h("b", {}, label),
    " ",
    definition,
  );
  const sign = button("?", () => show(note, sign), {
    class: "sign",
    "aria-label": `What ${label} means`,
  });
  return h("span", { class: "defined" }, label, sign, note);
}

/** Right below its sign, inside the window. */
function show(note: HTMLElement, sign: HTMLElement): void {
  note.togglePopover();
  if (!note.matches(":popover-open")) return;
  const at = sign.getBoundingClientRect();
  const width = note.offsetWidth;
  note.style.left = `${Math.max(8, Math.min(at.left - 12, window.innerWidth - width - 8))}px`;
  const below = at.bottom + 6;
  const fits = below + note.offsetHeight < window.innerHeight;
  note.style.top = `${fits ? below : Math.max(8, at.top - note.offsetHeight - 6)}px`;
}
