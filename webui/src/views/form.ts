// SPDX-License-Identifier: GPL-2.0-only
// A dialog with fields that sends one request.
import { open } from "./dialog";
import { h, text, uid, type Child } from "./dom";

/** A form in a dialog; `send` returns an error message, or null after it sent the request. */
export function form(title: string, content: Child, yes: string, send: () => string | null): void {
  const error = h("p", { class: "error", role: "alert" });
  const submit = (event: Event): void => {
    event.preventDefault();
    const wrong = send();
    if (wrong === null) dialog.close();
    else text(error, wrong);
  };
  const dialog = open(
    title,
    h(
      "form",
      { class: "form", onsubmit: submit },
      content,
      error,
      h("button", { type: "submit", class: "button primary" }, yes),
    ),
  );
}

/** A field for the full path of a file on the server. `problem`: what is wrong with it, or null. */
export interface PathField {
  content: Child;
  value: () => string;
  problem: () => string | null;
}

export function pathField(hint: string): PathField {
  const input = h("input", {
    type: "text",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    required: true,
    placeholder: "/srv/db/orders",
  });
  const value = (): string => input.value.trim();
  const problem = (): string | null =>
    value().startsWith("/") ? null : "Enter the full path of the file, which begins with /.";
  return { content: field("File", input, hint), value, problem };
}

export function field(label: string, input: HTMLElement, hint = ""): Child {
  const id = uid("field");
  input.id = id;
  const about = uid("hint");
  if (hint) input.setAttribute("aria-describedby", about);
  return [
    h("label", { for: id }, label),
    input,
    hint && h("p", { class: "hint", id: about }, hint),
  ];
}
