// SPDX-License-Identifier: GPL-2.0-only
// What a person asks for: an intent is posted, and what became of it is shown when it comes.
import { ApiError, get, post, token } from "../api/client";
import type { Intent } from "../api/types";
import { intents, takeIntents } from "../state";
import { button, fill, h } from "./dom";
import { askToken, forgetToken } from "./token";

const UNANSWERED_MS = 15_000;
const POLL_MS = 1_000;
const KEPT_MS = 12_000;

const shelf = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

export function toasts(): HTMLElement {
  return shelf;
}

interface Toast {
  say: (state: "waiting" | "good" | "bad", text: string) => void;
}

function toast(title: string): Toast {
  const line = h("span");
  const close = button("×", () => element.remove(), {
    class: "icon-button",
    "aria-label": "Dismiss",
  });
  const element = h("div", { class: "toast" }, h("div", {}, h("b", {}, title), line), close);
  shelf.append(element);
  return {
    say: (state, text) => {
      element.dataset["state"] = state;
      fill(line, text);
      // A failure stays until it is dismissed.
      if (state === "good") setTimeout(() => element.remove(), KEPT_MS);
    },
  };
}

/** Posts with the token, which is asked for where it is missing or wrong. Null: the person gave up. */
export async function allowed<T>(what: string, send: () => Promise<T>): Promise<T | null> {
  if (token.get() === "" && !(await askToken(`${what}: this change requires the token.`)))
    return null;
  for (;;) {
    try {
      return await send();
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.status !== 401) throw problem;
      forgetToken();
      if (!(await askToken("The server rejected the token."))) return null;
    }
  }
}

/** Asks for something. Resolves with the outcome; null where it was not asked for or not answered. */
export async function wish(
  title: string,
  kind: string,
  volume: string | null,
  args: Record<string, unknown>,
): Promise<Intent | null> {
  let shown: Toast | null = null;
  try {
    const intent = await allowed(title, () => post<Intent>("intents", { kind, volume, args }));
    if (intent === null) return null;
    takeIntents([intent]);
    shown = toast(title);
    shown.say("waiting", "Accepted; waiting for the result …");
    return await answered(intent, shown);
  } catch (problem) {
    (shown ?? toast(title)).say("bad", explained(problem));
    return null;
  }
}

export function explained(problem: unknown): string {
  if (!(problem instanceof ApiError)) return String(problem);
  return problem.hint ? `${problem.message}. ${problem.hint}` : problem.message;
}

async function answered(intent: Intent, shown: Toast): Promise<Intent | null> {
  const resolved = await outcome(intent.id);
  if (resolved === null) {
    shown.say(
      "bad",
      "ebbgated accepted this change but has not reported a result. It will appear under Requested changes on the Decisions page.",
    );
    return null;
  }
  shown.say(resolved.ok === true ? "good" : "bad", resolved.outcome ?? "done");
  return resolved;
}

/** From the event stream, or asked for where that is silent. */
async function outcome(id: number): Promise<Intent | null> {
  const deadline = Date.now() + UNANSWERED_MS;
  while (Date.now() < deadline) {
    const known = intents.get().find((row) => row.id === id);
    if (known?.resolved_unix_s != null) return known;
    await next(id);
    const asked = await get<Intent>(`intents/${id}`).catch(() => null);
    if (asked) takeIntents([asked]);
  }
  return null;
}

/** The next word on an intent, or some time later. */
function next(id: number): Promise<void> {
  return new Promise((resolve) => {
    let stop = (): void => undefined;
    const done = (): void => {
      clearTimeout(timer);
      stop();
      resolve();
    };
    const timer = setTimeout(done, POLL_MS);
    stop = intents.listen((rows) => {
      if (rows.some((row) => row.id === id && row.resolved_unix_s !== null)) queueMicrotask(done);
    });
  });
}
