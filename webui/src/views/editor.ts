// SPDX-License-Identifier: GPL-2.0-only
// A text editor with line numbers, error marks and completion from the policy schema.
import { complete, type Completion, type Schema } from "../lib/complete";
import { attribute, fill, h, text, uid } from "./dom";

export interface Problem {
  line: number;
  column: number;
  message: string;
}

export interface Editor {
  element: HTMLElement;
  get: () => string;
  set: (value: string) => void;
  problems: (found: readonly Problem[]) => void;
  goto: (line: number, column: number) => void;
}

const OFFERED = 12;

export function editor(schema: () => Schema | null, changed: () => void): Editor {
  const state = stateOf(schema);
  const { area, numbers, list, about } = state;
  const box = h("div", { class: "editor" }, numbers, area, list);
  area.addEventListener("input", () => {
    changed();
    drawNumbers(state);
    offer(state);
  });
  area.addEventListener("scroll", () => {
    numbers.scrollTop = area.scrollTop;
    hide(state);
  });
  area.addEventListener("keydown", (event) => onKey(state, event));
  area.addEventListener("blur", () => hide(state));
  area.addEventListener("click", () => hide(state));
  drawNumbers(state);
  const help = h(
    "p",
    { class: "hint" },
    "Ctrl+Space completes, Escape closes the list; Tab leaves the editor.",
  );
  return {
    element: h("div", { class: "editor-box" }, box, about, help),
    get: () => area.value,
    set: (value) => {
      area.value = value;
      state.marked = new Map();
      drawNumbers(state);
      hide(state);
    },
    problems: (found) => {
      state.marked = new Map(found.map((each) => [each.line, each.message]));
      attribute(area, "aria-invalid", found.length > 0 ? "true" : null);
      drawNumbers(state);
    },
    goto: (line, column) => goTo(state, line, column),
  };
}

function stateOf(schema: () => Schema | null): State {
  const id = uid("offers");
  const label = {
    "aria-label": "Policy text",
    "aria-controls": id,
    "aria-autocomplete": "list",
  };
  const plain = { spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off" };
  return {
    area: h("textarea", { class: "code", rows: 24, ...plain, ...label }),
    numbers: h("pre", { class: "line-numbers", "aria-hidden": "true" }),
    list: h("ul", {
      class: "offers",
      role: "listbox",
      id,
      "aria-label": "Completions",
      hidden: true,
    }),
    about: h("p", { class: "hint", "aria-live": "polite" }),
    schema,
    found: null,
    chosen: 0,
    marked: new Map(),
  };
}

interface State {
  area: HTMLTextAreaElement;
  numbers: HTMLElement;
  list: HTMLElement;
  about: HTMLElement;
  schema: () => Schema | null;
  found: Completion | null;
  chosen: number;
  marked: Map<number, string>;
}

function drawNumbers(state: State): void {
  const lines = state.area.value.split("\n").length;
  const shown = Array.from({ length: lines }, (_, i) => {
    const wrong = state.marked.get(i + 1);
    return h(
      "span",
      wrong ? { class: "wrong", title: wrong } : {},
      `${wrong ? "▸" : ""}${i + 1}\n`,
    );
  });
  fill(state.numbers, shown);
  state.numbers.scrollTop = state.area.scrollTop;
}

function goTo(state: State, line: number, column: number): void {
  const lines = state.area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const at = Math.min(start + Math.max(0, column - 1), start + (lines[line - 1]?.length ?? 0));
  state.area.focus();
  state.area.setSelectionRange(at, start + (lines[line - 1]?.length ?? 0));
  const height = state.area.scrollHeight / Math.max(1, lines.length);
  state.area.scrollTop = Math.max(0, (line - 6) * height);
}

function onKey(state: State, event: KeyboardEvent): void {
  if (event.ctrlKey && event.key === " ") {
    event.preventDefault();
    offer(state, true);
    return;
  }
  if (state.list.hidden || !state.found) return;
  const last = Math.min(state.found.items.length, OFFERED) - 1;
  if (event.key === "ArrowDown") state.chosen = state.chosen >= last ? 0 : state.chosen + 1;
  else if (event.key === "ArrowUp") state.chosen = state.chosen <= 0 ? last : state.chosen - 1;
  else if (event.key !== "Enter" && event.key !== "Escape") return;
  event.preventDefault();
  event.stopPropagation();
  if (event.key === "Enter") accept(state, state.chosen);
  else if (event.key === "Escape") hide(state);
  else draw(state);
}

function offer(state: State, forced = false): void {
  const schema = state.schema();
  const { selectionStart, value } = state.area;
  const found = schema ? complete(value, selectionStart, schema) : null;
  text(state.about, found?.about ?? "");
  const typed = found !== null && selectionStart > found.from;
  if (!found || found.items.length === 0 || !(typed || forced)) {
    hide(state);
    return;
  }
  state.found = found;
  state.chosen = 0;
  state.list.hidden = false;
  draw(state);
}

function draw(state: State): void {
  const items = state.found?.items.slice(0, OFFERED) ?? [];
  fill(
    state.list,
    items.map((item, i) =>
      h(
        "li",
        {
          role: "option",
          id: `${state.list.id}-${i}`,
          "aria-selected": String(i === state.chosen),
          onpointerdown: (event: PointerEvent) => {
            event.preventDefault();
            accept(state, i);
          },
        },
        h("b", {}, item.label),
        h("small", {}, item.about),
      ),
    ),
  );
  attribute(state.area, "aria-activedescendant", `${state.list.id}-${state.chosen}`);
  place(state);
}

/** Places the list below the cursor; the font has a fixed width. */
function place(state: State): void {
  const before = state.area.value.slice(0, state.found?.from ?? 0);
  const line = before.split("\n").length;
  const style = getComputedStyle(state.area);
  const height = Number.parseFloat(style.lineHeight);
  const column = before.length - before.lastIndexOf("\n") - 1;
  const width = Number.parseFloat(style.fontSize) * 0.602;
  const left = state.area.offsetLeft + 12 + column * width - state.area.scrollLeft;
  state.list.style.top = `${line * height + 12 - state.area.scrollTop}px`;
  state.list.style.left = `${Math.max(4, Math.min(left, state.area.offsetLeft + state.area.clientWidth - state.list.offsetWidth))}px`;
}

function hide(state: State): void {
  state.list.hidden = true;
  state.found = null;
  attribute(state.area, "aria-activedescendant", null);
}

function accept(state: State, index: number): void {
  const found = state.found;
  const item = found?.items[index];
  if (!found || !item) return;
  const end = state.area.selectionStart;
  state.area.setRangeText(item.insert, found.from, end, "end");
  hide(state);
  state.area.dispatchEvent(new InputEvent("input"));
}
