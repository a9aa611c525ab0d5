// SPDX-License-Identifier: GPL-2.0-only
// Dialogs and help notes. The browser's <dialog> keeps the focus inside, closes with Escape and returns
// the focus to the element that opened it.
import { button, h, uid, type Child } from "./dom";

export interface Dialog {
  body: HTMLElement;
  close: () => void;
}

/** Opens a dialog. `actions`: buttons at its foot. */
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
  // A click on the backdrop targets the element itself, not its content. One that began inside, as
  // when text is selected, closes nothing, and neither does the second half of a double click.
  let pressed: EventTarget | null = null;
  element.addEventListener("pointerdown", (event) => (pressed = event.target));
  element.addEventListener("click", (event) => {
    if (event.target === element && pressed === element && event.detail < 2) close();
  });
  element.addEventListener("close", () => {
    element.remove();
    closed();
  });
  document.body.append(element);
  element.showModal();
  return { body, close };
}

/** Asks for confirmation; resolves with true only if the user confirms. */
export function confirm(title: string, content: Child, yes: string): Promise<boolean> {
  return new Promise((resolve) => {
    let confirmed = false;
    const dialog = open(
      title,
      content,
      [
        button("Cancel", () => dialog.close()),
        button(
          yes,
          () => {
            confirmed = true;
            dialog.close();
          },
          { class: "button primary" },
        ),
      ],
      () => resolve(confirmed),
    );
  });
}

/** A term with a help button that opens its definition. */
export function defined(label: string, definition: string): HTMLElement {
  const id = uid("note");
  const note = h(
    "div",
    { id, class: "note", popover: "auto", role: "note" },
    h("b", {}, label),
    " ",
    definition,
  );
  // The browser opens and closes it after this, and draws it after the placing.
  const helpButton = button("?", () => requestAnimationFrame(() => place(note, helpButton)), {
    class: "sign",
    popovertarget: id,
    "aria-label": `What ${label} means`,
  });
  return h("span", { class: "defined" }, label, helpButton, note);
}

/** Places the note below its button, inside the window. */
function place(note: HTMLElement, helpButton: HTMLElement): void {
  if (!note.matches(":popover-open")) return;
  const at = helpButton.getBoundingClientRect();
  const width = note.offsetWidth;
  note.style.left = `${Math.max(8, Math.min(at.left - 12, window.innerWidth - width - 8))}px`;
  const below = at.bottom + 6;
  const fits = below + note.offsetHeight < window.innerHeight;
  note.style.top = `${fits ? below : Math.max(8, at.top - note.offsetHeight - 6)}px`;
}
