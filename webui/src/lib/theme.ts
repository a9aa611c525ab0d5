// SPDX-License-Identifier: GPL-2.0-only
// Light or dark theme: the user's choice, or else the system's. Pure.

export const CHOICES = ["auto", "light", "dark"] as const;
export type Choice = (typeof CHOICES)[number];

export function choiceOf(stored: string | null): Choice {
  return CHOICES.find((choice) => choice === stored) ?? "auto";
}

/** The next choice: first the opposite of the visible theme, then both, then the system's. */
export function next(choice: Choice, systemDark: boolean): Choice {
  if (choice === "auto") return systemDark ? "light" : "dark";
  return choice === (systemDark ? "light" : "dark") ? (systemDark ? "dark" : "light") : "auto";
}

export function isDark(choice: Choice, systemDark: boolean): boolean {
  return choice === "dark" || (choice === "auto" && systemDark);
}
