// SPDX-License-Identifier: GPL-2.0-only
// A list of a volume's figures: label, help text, value.
import type { Volume } from "../api/types";
import { bytes, nanoseconds, rate, ratio } from "../lib/format";
import { defined } from "./dialog";
import { h, text } from "./dom";
import {
  DISTURBANCE,
  disturbanceLabel,
  forecast,
  GATE,
  gateLabel,
  HIT_RATIO,
  DISK_STATE,
  IDLE_WAIT,
  load,
  LOAD,
  loadLabel,
  TIME_TO_CLEAN,
  TIME_TO_FULL,
  WRITE_BACK,
} from "./labels";

export type Figure = readonly [label: string, help: string, write: (volume: Volume) => string];

export const MAIN_FIGURES: readonly Figure[] = [
  ["Load", LOAD, loadLabel],
  ["Full in", TIME_TO_FULL, (v) => forecast(v, "time_to_full_s")],
  ["Clean in", TIME_TO_CLEAN, (v) => forecast(v, "time_to_clean_s")],
  ["Hit ratio", HIT_RATIO, (v) => ratio(v.hit_ratio)],
  ["Write-back", GATE, (v) => gateLabel(v.gate)],
  ["Write-back rate", WRITE_BACK, (v) => rate(v.destage_bytes_per_s)],
];

export const ALL_FIGURES: readonly Figure[] = [
  ...MAIN_FIGURES,
  ["Reads", "", (v) => load(v, "read")],
  ["Writes", "", (v) => load(v, "write")],
  ["Idle wait", IDLE_WAIT, (v) => `${nanoseconds(v.wait_ns)}${v.wait_learned ? "" : " (default)"}`],
  ["Returning requests", DISTURBANCE, disturbanceLabel],
  ["Disk state", DISK_STATE, (v) => v.backing_state_why || v.backing_state],
  ["Cache in use", "", (v) => `${ratio(v.in_use_ratio)} of ${bytes(v.cache_bytes)}`],
];

export function figureList(
  figures: readonly Figure[],
  className: string,
): { element: HTMLElement; update: (volume: Volume) => void } {
  const rows = figures.map(([label, help, write]) => ({
    term: h("dt", {}, help ? defined(label, help) : label),
    value: h("dd"),
    write,
  }));
  const element = h(
    "dl",
    { class: className },
    rows.map(({ term, value }) => h("div", {}, term, value)),
  );
  const update = (volume: Volume): void =>
    rows.forEach(({ value, write }) => text(value, write(volume)));
  return { element, update };
}
