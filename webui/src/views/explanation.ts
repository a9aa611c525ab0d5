// SPDX-License-Identifier: GPL-2.0-only
// Explains a decision: every proposal, each condition with its measured value and threshold, and the
// winners.
import { get } from "../api/client";
import type { Action, Condition, Decision, ExplainedDecision, Proposal } from "../api/types";
import { bytes, dateTime, knobValue, plural, UNKNOWN } from "../lib/format";
import { open } from "./dialog";
import { button, fill, h, table, type Child } from "./dom";
import { errorText } from "./actions";
import { gateLabel, settingLabel } from "./labels";

export function openDecision(id: number): void {
  const box = h("div", { "aria-live": "polite" }, h("p", { class: "hint" }, "Loading …"));
  open("Why", box);
  get<ExplainedDecision>(`decisions/${id}`)
    .then((decision) => fill(box, explanation(decision)))
    .catch((problem: unknown) => fill(box, h("p", { class: "error" }, errorText(problem))));
}

/** Opens the decision, or a list to choose from if there are several. */
export function openDecisions(
  decisions: readonly { id: number; at: number; label: string }[],
): void {
  const first = decisions[0];
  if (first && decisions.length === 1) {
    openDecision(first.id);
    return;
  }
  const rows = decisions.map(({ id, at, label }) =>
    h(
      "li",
      {},
      h("span", { class: "when" }, dateTime(at)),
      h("span", {}, label),
      button("Why", () => openDecision(id), { class: "button small" }),
    ),
  );
  open(plural(decisions.length, "decision"), h("ol", { class: "choices" }, rows));
}

function explanation(decision: ExplainedDecision): Child {
  return [
    h("p", { class: "lead" }, h("b", {}, decision.volume), `, ${dateTime(decision.at_unix_s)}`),
    h("p", { class: "sentence" }, decision.reason),
    h("p", {}, decisionText(decision)),
    decision.actions.length > 0
      ? writes(decision.actions)
      : h("p", { class: "hint" }, "No setting was changed."),
    h("h3", {}, "Proposals of all strategies"),
    proposals(decision.proposals),
  ];
}

export function decisionText(decision: Decision): string {
  const parts: string[] = [];
  if (decision.gate) {
    parts.push(`write-back ${gateLabel(decision.gate)}${by(decision.gate_strategy)}`);
  }
  if (decision.sequential_cutoff_bytes !== null) {
    parts.push(
      `sequential cutoff ${bytes(decision.sequential_cutoff_bytes)}${by(decision.cutoff_strategy)}`,
    );
  }
  return parts.join("; ");
}

function by(strategy: string): string {
  return strategy && ` (${strategy})`;
}

export function writes(actions: readonly Action[]): HTMLElement {
  return table(
    "Changed settings",
    ["Setting", "Before", "After", "Result"],
    actions.map((action) => [
      h("code", {}, action.knob),
      knobValue(action.knob, action.old),
      knobValue(action.knob, action.new),
      action.error ? `${action.outcome}: ${action.error}` : action.outcome,
    ]),
  );
}

/** All proposals in the order of the policy, with the winners marked. */
export function proposals(all: readonly Proposal[]): HTMLElement {
  if (all.length === 0) return h("p", { class: "hint" }, "No proposals.");
  return h("div", { class: "proposals" }, all.map(proposal));
}

function proposal(one: Proposal): HTMLElement {
  const won = one.wins.length > 0;
  const state = one.unsupported
    ? "unsupported here"
    : won
      ? `decides ${one.wins.map(settingLabel).join(", ")}`
      : "no effect";
  return h(
    "section",
    { class: "proposal", "data-won": String(won) },
    h("h4", {}, one.strategy, h("span", { class: "verdict" }, state)),
    h("p", { class: "sentence" }, one.unsupported || one.reason),
    one.conditions.length > 0 && conditions(one.strategy, one.conditions),
  );
}

function conditions(strategy: string, all: readonly Condition[]): HTMLElement {
  return table(
    `Conditions of ${strategy}`,
    ["Signal", "Measured", "", "Threshold", "Met"],
    all.map((each) => [
      each.signal,
      h("span", { class: "figure" }, each.measured ?? UNKNOWN),
      each.comparison,
      h("span", { class: "figure" }, each.threshold),
      metMark(each),
    ]),
  );
}

function metMark(each: Condition): HTMLElement {
  const known = each.measured !== null;
  const word = known ? (each.holds ? "✓ yes" : "✗ no") : "? unknown";
  return h("span", { class: "holds", "data-holds": known ? String(each.holds) : "unknown" }, word);
}
