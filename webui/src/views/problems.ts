// SPDX-License-Identifier: GPL-2.0-only
// The errors of a policy, and its keys without effect, each with a button that leads to its place.
import type { PolicyError } from "../api/types";
import { button, h } from "./dom";
import type { Editor } from "./editor";

export function errorItems(edit: Editor, errors: readonly PolicyError[]): HTMLElement[] {
  return errors.map((each) => item(edit, each, remedy(each)));
}

export function noteItems(edit: Editor, notes: readonly PolicyError[]): HTMLElement[] {
  return notes.map((each) => item(edit, each, each.expected ?? ""));
}

function remedy(error: PolicyError): string {
  return [
    error.expected && `Expected: ${error.expected}.`,
    error.nearest && `Did you mean ${error.nearest}?`,
  ]
    .filter(Boolean)
    .join(" ");
}

function item(edit: Editor, problem: PolicyError, more: string): HTMLElement {
  const where = `line ${problem.line}, column ${problem.column}`;
  return h(
    "li",
    {},
    button(where, () => edit.goto(problem.line, problem.column), {
      class: "button small",
      "aria-label": `Go to ${where}`,
    }),
    h("span", {}, problem.message, more && h("small", {}, more)),
  );
}
