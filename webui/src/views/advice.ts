// SPDX-License-Identifier: GPL-2.0-only
// Advice: what to change about devices and settings, with evidence, command, apply and the way back.
import { get } from "../api/client";
import type { Advice, AdviceList } from "../api/types";
import { plural } from "../lib/format";
import { format } from "../lib/route";
import { generation } from "../state";
import { confirm } from "./dialog";
import { button, fill, h, text, unknownList } from "./dom";
import { reader } from "./reader";
import type { View } from "./view";
import { explained, wish } from "./wish";

const WEIGHTS: Readonly<Record<string, string>> = {
  fault: "fault: data or tuning is at risk",
  advice: "worth it",
  note: "to know",
};

export function advicePage(parent: HTMLElement): View {
  const state = h("p", { class: "hint", role: "status" }, "Reading …");
  const list = h("div");
  parent.append(
    h("h1", {}, "Advice"),
    h(
      "p",
      { class: "lead" },
      "What this machine's caches would gain from, by what is measured here. Nothing is done unless you say so.",
    ),
    state,
    list,
  );
  const read = async (): Promise<void> => {
    const { advice, unknown } = await get<AdviceList>("advice");
    text(state, advice.length > 0 ? `${plural(advice.length, "piece")} of advice.` : "");
    fill(
      list,
      advice.length > 0 ? byVolume(advice, again) : none(unknown.length > 0),
      unknownList(unknown),
    );
  };
  const { again, stop } = reader(read, (problem) => text(state, explained(problem)));
  const unheard = generation.listen(again);
  return {
    destroy: () => {
      unheard();
      stop();
    },
  };
}

function none(some: boolean): HTMLElement {
  const why = some
    ? "Of what could be looked at, everything is as it should be."
    : "Devices and settings are as they should be, or no volume is followed.";
  return h("div", { class: "empty" }, h("h2", {}, "No advice"), h("p", {}, why));
}

function byVolume(all: readonly Advice[], again: () => void): HTMLElement[] {
  const groups = new Map<string, Advice[]>();
  for (const each of all) {
    const found = groups.get(each.volume);
    if (found) found.push(each);
    else groups.set(each.volume, [each]);
  }
  return [...groups].map(([volume, each]) =>
    h(
      "section",
      { class: "advice-group" },
      h("h2", {}, h("a", { href: format("volume", volume) }, each[0]?.title ?? volume)),
      each.map((one) => card(one, again)),
    ),
  );
}

function card(advice: Advice, again: () => void): HTMLElement {
  return h(
    "article",
    { class: "card advice", "data-weight": advice.weight },
    h(
      "div",
      { class: "card-head" },
      h(
        "h3",
        {},
        h("span", { class: "badge", "data-weight": advice.weight }, advice.id),
        ` ${advice.about}`,
      ),
      h("span", { class: "about" }, WEIGHTS[advice.weight] ?? advice.weight),
    ),
    h("p", { class: "sentence" }, advice.text),
    h(
      "dl",
      { class: "facts" },
      advice.evidence.length > 0 &&
        h("div", {}, h("dt", {}, "Evidence"), h("dd", {}, advice.evidence.join("; "))),
      advice.effect && h("div", {}, h("dt", {}, "Effect"), h("dd", {}, advice.effect)),
      advice.undo && h("div", {}, h("dt", {}, "Way back"), h("dd", {}, advice.undo)),
    ),
    advice.command && command(advice.command),
    h(
      "div",
      { class: "buttons" },
      applyButton(advice, again),
      advice.can_apply && button("Undo", () => void askUndo(advice, again)),
    ),
    !advice.can_apply && advice.why_not && h("p", { class: "hint" }, advice.why_not),
  );
}

function command(line: string): HTMLElement {
  const copy = button(
    "Copy",
    () => {
      void navigator.clipboard.writeText(line).then(() => {
        text(copy, "Copied");
        setTimeout(() => text(copy, "Copy"), 2000);
      });
    },
    { class: "button small" },
  );
  return h(
    "div",
    { class: "command" },
    h("pre", { tabindex: 0, role: "region", "aria-label": "Command" }, h("code", {}, line)),
    copy,
  );
}

function applyButton(advice: Advice, again: () => void): HTMLElement | null {
  if (!advice.can_apply) return null;
  const apply = async (): Promise<void> => {
    const sure = await confirm(
      `Apply ${advice.id}`,
      [
        h("p", {}, h("b", {}, advice.title), `: ${advice.text}`),
        advice.effect && h("p", {}, `Expected: ${advice.effect}.`),
        h(
          "p",
          { class: "hint" },
          "It lasts until it is released; no strategy changes it meanwhile.",
        ),
      ],
      "Apply",
    );
    if (
      sure &&
      (await wish(`${advice.title}: apply ${advice.id}`, "apply", advice.volume, { id: advice.id }))
    )
      again();
  };
  return button("Apply …", () => void apply(), { class: "button primary" });
}

async function askUndo(advice: Advice, again: () => void): Promise<void> {
  const sure = await confirm(
    `Undo ${advice.id}`,
    h(
      "p",
      {},
      `Everything that was set by hand on ${advice.title}, by this advice too, is given back to ebbgate.`,
    ),
    "Undo",
  );
  if (sure && (await wish(`${advice.title}: undo ${advice.id}`, "release", advice.volume, {})))
    again();
}
