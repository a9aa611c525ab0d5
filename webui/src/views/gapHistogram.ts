// SPDX-License-Identifier: GPL-2.0-only
// Idle periods by length, with the learned idle wait.
import type { Volume } from "../api/types";
import { count, nanoseconds, ratio, seconds } from "../lib/format";
import * as gaps from "../lib/gaps";
import { occupied } from "../lib/runs";
import { axisLabels, bars, empty, frame, marker, markLabel, type Frame, type Part } from "./bars";
import { attribute, fill, table, text } from "./dom";

export function gapHistogram(): Part {
  const part = frame("Idle periods by length", "number of periods; recent ones count more");
  attribute(part.plot, "role", "img");
  const update = (volume: Volume): void => {
    const found = occupied(volume.gap_counts, gaps.TRACE);
    const wait = volume.wait_ns / 1e9;
    const learned = volume.wait_learned ? "learned" : "default, nothing learned yet";
    if (!found) {
      empty(
        part,
        `No idle period measured yet. Write-back waits for ${seconds(wait)} without requests (${learned}).`,
      );
      return;
    }
    const last = Math.ceil(Math.log2(Math.max(wait, 1e-6) / 1e-6));
    const [from, end] = [Math.min(found[0], Math.max(0, last - 1)), Math.max(found[1], last + 1)];
    const counts = Array.from({ length: end }, (_, i) => volume.gap_counts[i] ?? 0);
    fill(
      part.svg,
      bars(counts, from, end, "bar-gap"),
      marker(gaps.position(wait, from, end), "mark-wait"),
    );
    markLabel(part.plot, gaps.position(wait, from, end), `wait ${seconds(wait)}`);
    axisLabels(part.axis, from, end, (bucket) => seconds(gaps.bucketLowSeconds(bucket)));
    const share = gaps.shareReaching(volume.gap_counts, wait);
    const sentence = `Write-back waits for ${nanoseconds(volume.wait_ns)} without requests (${learned}); ${ratio(share)} of idle periods last at least that long.`;
    text(part.reading, sentence);
    attribute(part.plot, "aria-label", sentence);
    gapRows(part, counts, from);
  };
  return { element: part.element, update };
}

function gapRows(part: Frame, counts: readonly number[], from: number): void {
  const rows = counts.slice(from).map((value, i) => {
    const low = gaps.bucketLowSeconds(from + i);
    return [`${seconds(low)} to ${seconds(2 * low)}`, count(Math.round(value * 10) / 10)];
  });
  part.setTable(() =>
    table("Idle periods by length", ["Length", "Periods"], rows, { class: "numbers" }),
  );
}
