// SPDX-License-Identifier: GPL-2.0-only
// Requests to this server only. The token is kept as long as the tab.
import { Kept } from "../lib/kept";
import type { ErrorBody } from "./types";

const TOKEN_KEY = "ebbgate-token";
const TIMEOUT_MS = 20_000;

/** An error message with a hint. `status`: 0 without an answer. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | null = null,
    readonly code = "",
  ) {
    super(message);
  }
}

/** The address of a part of the API: beside the page, which a proxy may serve below a path. */
export function address(path: string): string {
  const folder = location.pathname.replace(/[^/]*$/, "").replace(/^\/+/, "/");
  return `${folder}api/v1/${path}`;
}

const kept = new Kept(() => sessionStorage);

export const token = {
  get: (): string => kept.get(TOKEN_KEY) ?? "",
  set: (value: string): void => kept.set(TOKEN_KEY, value),
  forget: (): void => kept.remove(TOKEN_KEY),
};

/** A list in the query is its parameter several times. */
export function get<T>(path: string, query: Record<string, unknown> = {}): Promise<T> {
  const wanted = Object.entries(query)
    .flatMap(([key, value]) => [value].flat().map((each) => [key, each] as const))
    .filter(([, value]) => value !== "" && value != null);
  const search = new URLSearchParams(wanted.map(([key, value]) => [key, String(value)]));
  const tail = wanted.length > 0 ? `?${search.toString()}` : "";
  return request<T>("GET", address(path + tail));
}

export function post<T>(path: string, body: unknown, patienceMs = TIMEOUT_MS): Promise<T> {
  return request<T>("POST", address(path), body, token.get(), patienceMs);
}

/** Checks a token. Throws ApiError with status 401 if the server rejects it. */
export async function check(candidate: string): Promise<void> {
  await request("GET", address("token"), undefined, candidate);
}

async function request<T>(
  method: string,
  url: string,
  body?: unknown,
  candidate = token.get(),
  patienceMs = TIMEOUT_MS,
): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (candidate !== "") headers["Authorization"] = `Bearer ${candidate}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await answer(url, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    credentials: "omit",
    redirect: "error",
    cache: "no-store",
    signal: AbortSignal.timeout(patienceMs),
  });
  if (!response.ok) throw await refused(response);
  return (await response.json()) as T;
}

async function answer(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    throw new ApiError(
      0,
      late ? "the server did not answer in time" : "the server cannot be reached",
      "is ebbgate-web running? systemctl status ebbgate-web",
    );
  }
}

async function refused(response: Response): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as { error: ErrorBody };
    const place = error.place ? ` (line ${error.place.line}, column ${error.place.column})` : "";
    return new ApiError(response.status, error.message + place, error.hint, error.code);
  } catch {
    return new ApiError(response.status, `the server answered ${response.status}`);
  }
}
