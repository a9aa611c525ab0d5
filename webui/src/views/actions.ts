// SPDX-License-Identifier: GPL-2.0-only
// Posts the changes that users request, and shows their results.
import { ApiError, get, post, token } from "../api/client";
import type { Intent } from "../api/types";
import { intents, mergeIntents } from "../state";
import { button, fill, h } from "./dom";
import { askToken, forgetToken } from "./token";

const UNANSWERED_MS = 15_000;
const POLL_MS = 1_000;
const TOAST_MS = 12_000;

const shelf = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

export function toasts(): HTMLElement {
  return shelf;
}

interface Toast {
  show: (state: "waiting" | "good" | "bad", text: string) => void;
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
    show: (state, text) => {
      element.dataset["state"] = state;
      fill(line, text);
      // An error stays until it is dismissed.
      if (state === "good") setTimeout(() => element.remove(), TOAST_MS);
    },
  };
}

/** Sends with the token, and asks for a missing or wrong one. Null: the user cancelled. */
export async function withToken<T>(what: string, send: () => Promise<T>): Promise<T | null> {
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

/** Requests without a result so far: a double click is one request. */
const underWay = new Set<string>();

/** Requests a change. Resolves with its result, or null if it was not sent or not answered. */
export async function requestChange(
  title: string,
  kind: string,
  volume: string | null,
  args: Record<string, unknown>,
): Promise<Intent | null> {
  const key = JSON.stringify([kind, volume, args]);
  if (underWay.has(key)) return null;
  underWay.add(key);
  let shown: Toast | null = null;
  try {
    const intent = await withToken(title, () => post<Intent>("intents", { kind, volume, args }));
    if (intent === null) return null;
    mergeIntents([intent]);
    shown = toast(title);
    shown.show("waiting", "Accepted; waiting for the result …");
    return await waitForResult(intent, shown);
  } catch (problem) {
    (shown ?? toast(title)).show("bad", errorText(problem));
    return null;
  } finally {
    underWay.delete(key);
  }
}

export function errorText(problem: unknown): string {
  if (!(problem instanceof ApiError)) return String(problem);
  return problem.hint ? `${problem.message}. ${problem.hint}` : problem.message;
}

async function waitForResult(intent: Intent, shown: Toast): Promise<Intent | null> {
  const resolved = await resolvedIntent(intent.id);
  if (resolved === null) {
    shown.show(
      "bad",
      "ebbgated accepted this change but has not reported a result. It will appear under Requested changes on the Decisions page.",
    );
    return null;
  }
  shown.show(resolved.ok === true ? "good" : "bad", resolved.outcome ?? "done");
  return resolved;
}

/** The result from the event stream, or by polling if there is none. */
async function resolvedIntent(id: number): Promise<Intent | null> {
  const deadline = Date.now() + UNANSWERED_MS;
  while (Date.now() < deadline) {
    const known = intents.get().find((row) => row.id === id);
    if (known?.resolved_unix_s != null) return known;
    await nextUpdate(id);
    const read = await get<Intent>(`intents/${id}`).catch(() => null);
    if (read) mergeIntents([read]);
  }
  return null;
}

/** Waits for the next update of an intent, or for a timeout. */
function nextUpdate(id: number): Promise<void> {
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
