// SPDX-License-Identifier: GPL-2.0-only
// Where in a YAML document the cursor stands: the keys above it, and what is being written. Pure.
// It reads block style by indentation and flow style within a line: enough for policies, and it works
// on a text that is not finished.

/** A step is a key, or `[]` for an entry of a list. */
export interface Place {
  path: string[];
  /** Is a value being written (behind a colon), or a key? In a list it may become either. */
  value: boolean;
  /** What stands of the word already, and where it begins. */
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

/** Brings the stack to a line. The key of a finished line stays on it; so does one with a value. */
function descend(stack: Level[], line: string, whole: boolean): { text: string; value: boolean } {
  let indent = line.length - line.trimStart().length;
  let text = line.trimStart();
  // The cursor's own line may be empty: then its column says how deep it is.
  while ((stack.at(-1)?.indent ?? -1) >= indent && stack.length > 0) stack.pop();
  for (let item = /^-(\s+|$)/.exec(text); item; item = /^-(\s+|$)/.exec(text)) {
    // A list may stand at the indent of its key, whose level was just popped: that is rare here.
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

/** The steps that open brackets add: `{a: [{b: ` is a, [], b. `value`: null where none is open. */
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
