// SPDX-License-Identifier: GPL-2.0-only
// One volume: what it does now, and its course with every decision.
import type { Volume } from "../api/types";
import { format, type Route } from "../lib/route";
import { volumes } from "../state";
import { coursePart } from "./course";
import { fill, h } from "./dom";
import type { View } from "./view";
import { nowPart } from "./volumenow";

export function volumePage(parent: HTMLElement, route: Route): View {
  const now = nowPart();
  const course = coursePart(route, () => find(route.name)?.volume ?? route.name);
  const gone = h("div");
  parent.append(now.element, gone, course.element);
  const draw = (): void => {
    const found = find(route.name);
    now.element.hidden = found === undefined;
    if (found) {
      now.update(found);
      course.updateNow(found);
      fill(gone);
      document.title = `${found.title} – ebbgate`;
    } else if (volumes.get() !== null && gone.childElementCount === 0) {
      fill(
        gone,
        h(
          "div",
          { class: "empty" },
          h("h1", {}, route.name),
          h("p", {}, "The daemon does not follow such a volume now. "),
          h("a", { href: format("overview") }, "All volumes"),
        ),
      );
    }
  };
  const stop = volumes.listen(draw);
  return {
    destroy: () => {
      stop();
      course.destroy();
    },
  };
}

/** By kernel name, or by what people call it. */
function find(name: string): Volume | undefined {
  const all = volumes.get()?.volumes ?? [];
  return all.find((each) => each.volume === name) ?? all.find((each) => each.title === name);
}
