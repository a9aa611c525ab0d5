// SPDX-License-Identifier: GPL-2.0-only
// Advice: recommended changes of devices and settings, and those already applied.
import { get } from "../api/client";
import type { Advice, AdviceList, AppliedAdvice } from "../api/types";
import { dateTime, knobValue, plural } from "../lib/format";
import { format } from "../lib/route";
import { generation, volumes } from "../state";
import { command } from "./command";
import { confirm } from "./dialog";
import { button, fill, h, text, uncheckedList } from "./dom";
import { retry } from "./retry";
import type { View } from "./view";
import { errorText, requestChange } from "./actions";

export function advicePage(parent: HTMLElement): View {
  const state = h("p", { class: "hint", role: "status" }, "Loading …");
  const list = h("div");
  parent.append(
    h("h1", {}, "Advice"),
    h(
      "p",
      { class: "lead" },
      "Recommended changes to volumes and disks, based on measurements of this machine. Nothing changes until you apply it.",
    ),
    state,
    list,
  );
  const draw = ({ advice, applied, unknown }: AdviceList): void => {
    text(state, advice.length > 0 ? `${plural(advice.length, "recommendation")}.` : "");
    fill(
      list,
      advice.length > 0 ? byVolume(advice, reload) : none(unknown.length),
      appliedList(applied, reload),
      uncheckedList(unknown),
    );
  };
  const { reload, stop } = retry(
    () => get<AdviceList>("advice"),
    draw,
    (problem) => text(state, errorText(problem)),
  );
  // Modes and overrides determine what is applied and what can be. The first volumes that arrive are
  // no change: a page that is drawn again takes from a person what was just selected.
  let known = volumes.get() === null ? null : fingerprint();
  const stops = [
    stop,
    generation.listen(reload),
    volumes.listen(() => {
      const now = fingerprint();
      if (known !== null && now !== known) reload();
      known = now;
    }),
  ];
  return { destroy: () => stops.forEach((each) => each()) };
}

function fingerprint(): string {
  const found = volumes.get()?.volumes ?? [];
  return JSON.stringify(
    found.map(({ volume, mode, overrides }) => [
      volume,
      mode,
      overrides.map(({ knob, since_unix_ns }) => [knob, since_unix_ns]),
    ]),
  );
}

function none(unknown: number): HTMLElement {
  const why =
    unknown > 0
      ? `No problems found; ${plural(unknown, "item")} not checked.`
      : "No problems found.";
  return h("div", { class: "empty" }, h("h2", {}, "No recommendations"), h("p", {}, why));
}

function byVolume(all: readonly Advice[], reload: () => void): HTMLElement[] {
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
      each.map((one) => card(one, reload)),
    ),
  );
}

function card(advice: Advice, reload: () => void): HTMLElement {
  return h(
    "article",
    { class: "card advice", "data-weight": advice.weight },
    h(
      "div",
      { class: "card-head" },
      h(
        "h3",
        {},
        h("span", { class: "badge", "data-weight": advice.weight }, advice.severity),
        ` ${advice.about}`,
      ),
      h("span", { class: "about" }, advice.id),
    ),
    h("p", { class: "sentence" }, advice.text),
    h(
      "dl",
      { class: "facts" },
      fact("Measured", advice.evidence.join("; ")),
      fact("Effect", advice.effect),
    ),
    advice.command && command(advice.command, "Command"),
    advice.lasts && h("p", { class: "hint" }, advice.lasts),
    advice.keep && command(advice.keep, "Rule that makes it permanent"),
    !advice.can_apply && advice.command && advice.undo
      ? [h("p", { class: "hint" }, "To undo:"), command(advice.undo, "Command that undoes it")]
      : null,
    advice.can_apply
      ? h("div", { class: "buttons" }, applyButton(advice, reload))
      : advice.why_not && h("p", { class: "hint" }, advice.why_not),
  );
}

function fact(name: string, value: string | null): HTMLElement | null {
  return value ? h("div", {}, h("dt", {}, name), h("dd", {}, value)) : null;
}

function applyButton(advice: Advice, reload: () => void): HTMLElement {
  const apply = async (): Promise<void> => {
    const confirmed = await confirm(
      `Apply ${advice.id}`,
      [
        h("p", {}, advice.text),
        advice.effect && h("p", {}, `Expected: ${advice.effect}.`),
        h(
          "p",
          { class: "hint" },
          "The setting stays until you undo it, also after a reboot. ebbgate does not change it meanwhile.",
        ),
      ],
      "Apply",
    );
    if (
      confirmed &&
      (await requestChange(`${advice.title}: apply ${advice.id}`, "apply", advice.volume, {
        id: advice.id,
      }))
    )
      reload();
  };
  return button("Apply …", () => void apply(), { class: "button primary" });
}

function appliedList(applied: readonly AppliedAdvice[], reload: () => void): HTMLElement | null {
  if (applied.length === 0) return null;
  return h(
    "section",
    { class: "advice-group", "aria-label": "Applied recommendations" },
    h("h2", {}, "Applied"),
    applied.map((each) => appliedCard(each, reload)),
  );
}

function appliedCard(applied: AppliedAdvice, reload: () => void): HTMLElement {
  const set = applied.knobs.map(({ knob, value }) => `${knob} ${knobValue(knob, value)}`);
  return h(
    "article",
    { class: "card advice", "data-applied": applied.id },
    h(
      "div",
      { class: "card-head" },
      h("h3", {}, h("a", { href: format("volume", applied.volume) }, applied.title)),
      h("span", { class: "about" }, applied.id),
    ),
    h("dl", { class: "facts" }, fact("Settings", set.join(", ")), fact("Applied by", applied.who)),
    h("p", { class: "hint" }, `Applied on ${dateTime(applied.at_unix_s)}.`),
    h(
      "div",
      { class: "buttons" },
      button("Undo …", () => void askUndo(applied, reload), {
        "aria-label": `Undo ${applied.id} of ${applied.title}`,
      }),
    ),
  );
}

/** Releases the knobs of this advice only, not other overrides of the volume. */
async function askUndo(applied: AppliedAdvice, reload: () => void): Promise<void> {
  const knobs = applied.knobs.map(({ knob }) => knob);
  const confirmed = await confirm(
    `Undo ${applied.id}`,
    h(
      "p",
      {},
      `Ends the override of ${knobs.join(" and ")} on ${applied.title}. In mode enforce ebbgate then chooses the value; otherwise the previous value is restored. Other settings do not change.`,
    ),
    "Undo",
  );
  if (!confirmed) return;
  for (const knob of knobs) {
    const done = await requestChange(
      `${applied.title}: release ${knob}`,
      "release",
      applied.volume,
      {
        knob,
      },
    );
    if (done === null) break;
  }
  reload();
}
