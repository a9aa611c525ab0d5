// SPDX-License-Identifier: GPL-2.0-only
// Finds the position of the cursor in a YAML document: keys above it and the typed word. Pure.
// Reads block style by indentation and flow style within a line. That is enough for policies, and it
// works on unfinished text.

/** A step is a key, or `[]` for an entry of a list. */
export interface Place {
  path: string[];
  /** Is a value being written (after a colon), or a key? A list entry may become either. */
  value: boolean;
  /** The part of the word before the cursor, and its start. */
  word: string;
  from: number;
}

interface Level {
  indent: number;
  step: string;
}

const KEY = /^["']?([\w-]+)["']?\s*:(?=\s|$)/;
const WORD = /[\w%./*-]*$/;

export function placeAt(text: string, offset: number): Place | null {
  const before = text.slice(0, offset);
  const start = before.lastIndexOf("\n") + 1;
  const stack: Level[] = [];
  for (const line of before.slice(0, start).split("\n")) {
    if (/^\s*(#|$)/.test(line)) continue;
    descend(stack, line, true);
  }
  const line = before.slice(start);
  if (/(^|\s)#/.test(line)) return null;
  const rest = descend(stack, line, false);
  const word = WORD.exec(line)?.[0] ?? "";
  const path = stack.map((level) => level.step);
  const flow = flowSteps(rest.text);
  return {
    path: [...path, ...flow.path],
    value: flow.value ?? rest.value,
    word,
    from: offset - word.length,
  };
}

/** Updates the stack for a line; keys remain on it, with and without a value. */
function descend(stack: Level[], line: string, whole: boolean): { text: string; value: boolean } {
  let indent = line.length - line.trimStart().length;
  let text = line.trimStart();
  // The cursor's line may be empty: then its column gives the depth.
  while ((stack.at(-1)?.indent ?? -1) >= indent && stack.length > 0) stack.pop();
  for (let item = /^-(\s+|$)/.exec(text); item; item = /^-(\s+|$)/.exec(text)) {
    // Not handled (rare in policies): a list at the indent of its key, whose level was just popped.
    stack.push({ indent, step: "[]" });
    indent += item[0].length;
    text = text.slice(item[0].length);
  }
  const key = KEY.exec(text);
  if (!key?.[1]) return { text, value: false };
  stack.push({ indent, step: key[1] });
  const value = text.slice(key[0].length).trimStart();
  return { text: value, value: whole || line.length > 0 };
}

/** Steps added by open brackets: `{a: [{b: ` is a, [], b. `value`: null without an open bracket. */
function flowSteps(text: string): { path: string[]; value: boolean | null } {
  const open: { list: boolean; key: string | null }[] = [];
  let token = "";
  let quote = "";
  for (const char of text) {
    const level = open.at(-1);
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (char === "{" || char === "[") open.push({ list: char === "[", key: null });
    else if (char === "}" || char === "]") open.pop();
    else if (char === "," && level) level.key = null;
    else if (char === ":" && level && !level.list) level.key = token.trim();
    token = /[\w-]/.test(char) ? token + char : "";
  }
  const path = open.flatMap((level) =>
    level.list ? ["[]"] : level.key === null ? [] : [level.key],
  );
  const last = open.at(-1);
  return { path, value: last === undefined ? null : !last.list && last.key !== null };
}
