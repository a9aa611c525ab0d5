// SPDX-License-Identifier: GPL-2.0-only
// Creates DOM nodes. No other file makes markup, so text is never parsed as HTML.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Handler = (event: never) => void;
export type Props = Record<string, string | number | boolean | null | undefined | Handler>;

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), props, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS(SVG, tag), props, children);
}

/** Functions become listeners (`onclick`); false and null omit an attribute. */
function filled<E extends Element>(element: E, props: Props, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    } else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (typeof child === "string" || typeof child === "number") parent.append(String(child));
    else if (child instanceof Node) parent.append(child);
    else append(parent, child);
  }
}

/** Replaces all children. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** Replaces what is shown if it reads otherwise, so that focus and clicks inside are not lost. */
export function fillIfOther(parent: Element, child: HTMLElement | null): void {
  if ((child?.textContent ?? "") !== parent.textContent) fill(parent, child);
}

/** Writes only on a difference, which avoids a new layout. */
export function text(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

export function attribute(element: Element, name: string, value: string | null): void {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

let numbered = 0;

/** A new id for `aria-labelledby` and the like. */
export function uid(prefix: string): string {
  numbered += 1;
  return `${prefix}-${numbered}`;
}

export function button(label: Child, onclick: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", class: "button", onclick, ...props }, label);
}

/** A row of buttons, one of which is pressed. */
export function segmented<T extends string>(
  label: string,
  options: readonly T[],
  pressed: T,
  choose: (option: T) => void,
  className = "segmented",
): HTMLElement {
  const buttons = options.map((option) => {
    const press = (): void => {
      for (const each of buttons)
        attribute(each, "aria-pressed", String(each.textContent === option));
      choose(option);
    };
    const state = { "aria-pressed": String(option === pressed) };
    return h("button", { type: "button", onclick: press, ...state }, option);
  });
  return h("div", { class: className, role: "group", "aria-label": label }, buttons);
}

/** A table that scrolls sideways inside its box, also by keyboard. */
export function table(
  caption: string,
  head: readonly Child[],
  rows: readonly (readonly Child[])[],
  props: Props = {},
): HTMLElement {
  return h(
    "div",
    { class: "table-box", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      props,
      h("caption", { class: "visually-hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((cell) => h("th", { scope: "col" }, cell)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((cell) => h("td", {}, cell)),
          ),
        ),
      ),
    ),
  );
}

/** Fills the table of a `details` while it is open and has no focus inside. */
export function fillTable(box: HTMLElement, make: () => HTMLElement): void {
  if (box.closest("details")?.open !== true || box.contains(document.activeElement)) return;
  refill(box, make());
}

/** In place of a table without rows. */
export function noRows(): HTMLElement {
  return h("p", { class: "hint" }, "No data.");
}

/** Replaces tables that read otherwise. They stay scrolled sideways, as on a phone they have to be. */
export function refill(parent: HTMLElement, made: HTMLElement): void {
  if (parent.firstElementChild?.isEqualNode(made) === true) return;
  const boxes = (): HTMLElement[] => [...parent.querySelectorAll<HTMLElement>(".table-box")];
  const scrolled = boxes().map((box) => box.scrollLeft);
  fill(parent, made);
  boxes().forEach((box, i) => {
    if (scrolled[i]) box.scrollLeft = scrolled[i];
  });
}

/** Term and value pairs. */
export function facts(
  pairs: readonly (readonly [Child, Child])[],
  className = "facts",
): HTMLElement {
  return h(
    "dl",
    { class: className },
    pairs.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
  );
}

/** A list of items that could not be checked, with the reasons. */
export function uncheckedList(
  all: readonly { title: string | null; why: string }[],
): HTMLElement | null {
  if (all.length === 0) return null;
  const rows = all.map((each) =>
    h("li", {}, each.title ? h("b", {}, `${each.title}: `) : "", each.why),
  );
  return h(
    "details",
    { class: "panel", open: all.length <= 5 },
    h("summary", {}, `Not checked: ${all.length}`),
    h("ul", { class: "plain-list" }, rows),
  );
}
