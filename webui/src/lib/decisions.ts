// SPDX-License-Identifier: GPL-2.0-only
// Which decisions a filter shows. Pure.
import type { Decision } from "../api/types";

/** As the server filters them. */
export function matches(decision: Decision, query: Readonly<Record<string, string>>): boolean {
  const { volume, knob, strategy, outcome } = query;
  const { actions, gate_strategy, cutoff_strategy } = decision;
  const by = [gate_strategy, cutoff_strategy, ...actions.map((action) => action.strategy)];
  const written = actions.some(
    (action) => (!knob || action.knob === knob) && (!outcome || action.outcome === outcome),
  );
  return (
    (!volume || volume === decision.volume) &&
    (!strategy || by.includes(strategy)) &&
    ((!knob && !outcome) || written)
  );
}
