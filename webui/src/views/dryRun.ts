// SPDX-License-Identifier: GPL-2.0-only
// Dry run: what a policy would have done differently in the last hours.
import { post } from "../api/client";
import type { Difference, DryRun, Policies } from "../api/types";
import { count, dateTime, plural, ratio, seconds } from "../lib/format";
import { volumes } from "../state";
import { button, fill, h, table, uid } from "./dom";
import { errorText } from "./actions";
import { gateKindLabel, settingLabel } from "./labels";

const HOURS = [1, 6, 24];
const SHOWN = 200;
// The server replays up to a day of samples with both policies, after those of others.
const PATIENCE_MS = 260_000;

export function dryRun(of: () => { text: string; policies: Policies | null }): {
  element: HTMLElement;
} {
  const volume = h("select", { id: uid("volume") });
  const against = h("select", { id: uid("against") });
  const hours = h(
    "select",
    { id: uid("hours") },
    HOURS.map((each) => h("option", { value: each, selected: each === 24 }, plural(each, "hour"))),
  );
  const result = h("div", { class: "dry-run", "aria-live": "polite" });
  const run = button("Run", () => void tryIt());
  async function tryIt(): Promise<void> {
    run.disabled = true;
    fill(result, h("p", { class: "hint" }, "Running on recorded data …"));
    try {
      const body = {
        volume: volume.value,
        text: of().text,
        against: against.value || null,
        hours: Number(hours.value),
      };
      fill(result, drawn(await post<DryRun>("policies/dry-run", body, PATIENCE_MS)));
    } catch (problem) {
      fill(result, h("p", { class: "error" }, errorText(problem)));
    }
    run.disabled = false;
  }
  const details = h(
    "details",
    { class: "panel", ontoggle: () => choices(volume, against, of().policies) },
    h("summary", {}, "Dry run: what this policy would have done differently"),
    h(
      "div",
      { class: "filters" },
      field("Volume", volume),
      field("Compare with", against),
      field("Over the last", hours),
      run,
    ),
    result,
  );
  return { element: details };
}

/** Updates the choices and keeps the selection. */
function choices(
  volume: HTMLSelectElement,
  against: HTMLSelectElement,
  policies: Policies | null,
): void {
  const all = volumes.get()?.volumes ?? [];
  const known = [...(policies?.files ?? []), ...(policies?.shipped ?? [])].map((each) => each.name);
  const option = (value: string, label: string, chosen: string): HTMLElement =>
    h("option", { value, selected: value === chosen }, label);
  const [of, by] = [volume.value, against.value];
  fill(
    volume,
    all.map((each) => option(each.volume, each.title, of)),
  );
  fill(
    against,
    option("", "current policy", by),
    [...new Set(known)].map((name) => option(name, name, by)),
  );
}

function field(label: string, element: HTMLElement): HTMLElement {
  return h("div", { class: "field" }, h("label", { for: element.id }, label), element);
}

function drawn(found: DryRun): HTMLElement[] {
  const covered = `${count(found.frames)} samples from ${dateTime(found.from_unix_s)} to ${dateTime(found.until_unix_s)}; the history covers ${ratio(found.coverage_ratio)} of that time.`;
  const head =
    found.differences.length === 0
      ? "No differences."
      : `${plural(found.differences.length, "difference")}:`;
  const left = Math.max(0, found.differences.length - SHOWN) + found.left_out;
  return [
    h("p", {}, h("b", {}, head), ` ${covered}`),
    ...found.notes.map((note) => h("p", { class: "remark" }, note)),
    spent(found),
    list(found.differences),
    ...(left > 0 ? [h("p", { class: "hint" }, `${count(left)} more are not shown.`)] : []),
  ];
}

function list(all: readonly Difference[]): HTMLElement {
  const box = { class: "table-box", tabindex: 0, role: "region", "aria-label": "Differences" };
  return h("div", box, h("ol", { class: "diff" }, all.slice(0, SHOWN).map(difference)));
}

/** Time in each state of the gate with both policies. */
function spent(found: DryRun): HTMLElement {
  const { before, after } = found.destage_s;
  const gates = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const rows = gates.map((gate) => [
    gateKindLabel(gate),
    seconds(before[gate] ?? 0),
    seconds(after[gate] ?? 0),
  ]);
  return table(
    "Time in each state of write-back",
    ["Write-back", "Before", "With this policy"],
    rows,
  );
}

function difference(each: Difference): HTMLElement {
  const lasts = seconds(Math.max(0, each.until_unix_s - each.at_unix_s));
  return h(
    "li",
    {},
    h(
      "p",
      { class: "when" },
      `${dateTime(each.at_unix_s)}, for ${lasts}: `,
      h("b", {}, settingLabel(each.setting)),
    ),
    h(
      "p",
      { class: "removed" },
      h("span", { class: "sign-word" }, "− "),
      each.before,
      h("small", {}, each.why_before),
    ),
    h(
      "p",
      { class: "added" },
      h("span", { class: "sign-word" }, "+ "),
      each.after,
      h("small", {}, each.why_after),
    ),
  );
}
