// SPDX-License-Identifier: GPL-2.0-only
// The address after the #: page, name and filters. Pure.

export const PAGES = [
  "overview",
  "volume",
  "heat",
  "pins",
  "decisions",
  "advice",
  "policy",
  "doctor",
] as const;
export type Page = (typeof PAGES)[number];

export interface Route {
  page: Page;
  /** The volume or policy that the page shows; may be empty. */
  name: string;
  query: Readonly<Record<string, string>>;
}

/** `#/volume/dm-3?range=1h`; an unknown address is the overview. */
export function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [first = "", ...rest] = path.split("/");
  const query = Object.fromEntries(new URLSearchParams(search));
  const page = PAGES.find((known) => known === first);
  if (page === undefined) return { page: "overview", name: "", query: {} };
  return { page, name: decoded(rest.join("/")), query };
}

export function format(
  page: Page,
  name = "",
  query: Readonly<Record<string, string>> = {},
): string {
  const wanted = Object.entries(query).filter(([, value]) => value !== "");
  const search = wanted.length > 0 ? `?${new URLSearchParams(wanted).toString()}` : "";
  return `#/${page}${name === "" ? "" : `/${encodeURIComponent(name)}`}${search}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const RANGES = { "5m": 300, "30m": 1800, "3h": 10800, "24h": 86400, "7d": 604800 } as const;
export type Range = keyof typeof RANGES;

export function rangeOf(text: string | undefined): Range {
  return text !== undefined && text in RANGES ? (text as Range) : "5m";
}
