// SPDX-License-Identifier: GPL-2.0-only
// Asks for the token that changes require; it is kept for this tab only.
import { ApiError, check, token } from "../api/client";
import { open } from "./dialog";
import { button, fill, h, uid } from "./dom";

function tokenChanged(): void {
  window.dispatchEvent(new Event("ebbgate-token"));
}

export function forgetToken(): void {
  token.forget();
  tokenChanged();
}

/** Resolves with true once the server accepts a token, with false if the user cancels. */
export function askToken(why = ""): Promise<boolean> {
  return new Promise((resolve) => {
    const input = field();
    const error = h("p", { class: "error", role: "alert" });
    let taken = false;
    let over = false;
    const send = async (): Promise<void> => {
      fill(error);
      try {
        const typed = input.value.trim();
        await check(typed);
        // The answer may come after the dialog was closed, which is a no.
        if (over) return;
        token.set(typed);
        tokenChanged();
        taken = true;
        dialog.close();
      } catch (problem) {
        fill(error, refusal(problem));
        input.focus();
        input.select();
      }
    };
    const form = formOf(input, error, why, () => void send());
    const forget = button("Forget token", () => {
      forgetToken();
      dialog.close();
    });
    const held = token.get() !== "";
    const dialog = open("Token for changes", form, held ? [forget] : [], () => {
      over = true;
      resolve(taken);
    });
    input.focus();
  });
}

function field(): HTMLInputElement {
  return h("input", {
    id: uid("token"),
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
  });
}

function formOf(
  input: HTMLInputElement,
  error: HTMLElement,
  why: string,
  send: () => void,
): HTMLElement {
  return h(
    "form",
    {
      class: "form",
      onsubmit: (event: Event) => {
        event.preventDefault();
        send();
      },
    },
    why !== "" && h("p", {}, why),
    h("label", { for: input.id }, "Token"),
    input,
    error,
    h(
      "p",
      { class: "hint" },
      "Changes require the token. To print it, run ",
      h("code", {}, "ebbgate web-token"),
      " as root or as a member of the group ebbgate. It is kept in this tab only, until the tab is closed.",
    ),
    h("button", { type: "submit", class: "button primary" }, "Use token"),
  );
}

function refusal(problem: unknown): string {
  if (!(problem instanceof ApiError)) return String(problem);
  if (problem.status === 401) return "The server rejected this token.";
  return [problem.message, problem.hint].filter(Boolean).join(": ");
}
