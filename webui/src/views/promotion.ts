// SPDX-License-Identifier: GPL-2.0-only
// What promote_hot moves into the cache, what that takes and what it has saved; or how to switch it on.
import type { Promotion, Volume } from "../api/types";
import { bytes, count, nanoseconds, ratio, UNKNOWN } from "../lib/format";
import { format } from "../lib/route";
import { command } from "./command";
import { figureList, type Figure } from "./figures";
import { fill, h, text } from "./dom";

const HELD_OUT =
  "One of 16 parts that are worth a move is left where it is, chosen by a hash. How often users miss these, against " +
  "those that were moved, is the gain.";
const SAVED =
  "Disk time of users' requests that moves have saved since ebbgated follows the volume, with its error. Measured, not " +
  "predicted; negative if moves have cost users time.";
const COST = "Disk time that moves have taken, and misses of what had to leave the cache for them.";
const RATIO = "Disk time saved for each second of cost. Below 1, moves do not pay.";
const FAILED =
  "Not read, or not taken by the cache. In bcache one of up to 16 MiB is looked for, which tells of all of them.";
const BUDGET =
  "What may still be written to the cache today before moves end: the policy's limit ssd_writes. Unknown without it.";
const TIME_SHARE =
  "The largest share of time in which data is moved. Learned from users' reads: halved when they get slower.";
const OTHERS =
  "Blocks that users' misses have brought into a dm-cache since ebbgated follows the volume: its promotions less those " +
  "of warm-ups and moves. Where they grow beside these, their reads stop for a while. Unknown for bcache.";

export interface PromotionPart {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function promotionPart(): PromotionPart {
  const sentence = h("p", { class: "sentence" });
  const remark = h("p", { class: "hint" });
  const running = figureList(FIGURES, "figures wide");
  const why = h("p", { class: "hint" }, HELD_OUT);
  const on = h("div", { class: "promotion" }, sentence, remark, running.element, why);
  const off = h("div", { class: "promotion" });
  const element = h("section", { class: "card" }, h("h2", {}, "Moves into the cache"), on, off);
  let offered = "";
  const update = (volume: Volume): void => {
    const { promotion } = volume;
    on.hidden = promotion === null;
    off.hidden = promotion !== null;
    if (promotion === null) {
      const key = `${volume.title} ${volume.kind} ${volume.policy} ${volume.heat === null}`;
      if (key !== offered) fill(off, offer(volume));
      offered = key;
      return;
    }
    text(sentence, sentenceOf(volume, promotion));
    text(remark, remarkOf(volume, promotion));
    running.update(volume);
  };
  return { element, update };
}

const FIGURES: readonly Figure[] = [
  ["Moved", "", (v) => bytes(v.promotion?.moved_bytes)],
  ["Failed", FAILED, (v) => bytes(v.promotion?.failed_bytes)],
  ["Chosen, not moved", "", (v) => bytes(v.promotion?.pending_bytes)],
  ["Held out", HELD_OUT, (v) => bytes(v.promotion?.held_out_bytes)],
  ["Time spent reading", "", (v) => nanoseconds(v.promotion?.busy_ns)],
  ["Users' misses cached", OTHERS, (v) => count(v.promotion?.other_promotions)],
  ["Stopped for these", OTHERS, (v) => count(v.promotion?.promotion_holds)],
  ["Time share", TIME_SHARE, (v) => ratio(v.promotion?.time_share)],
  ["SSD writes left", BUDGET, (v) => budget(v.promotion)],
  ["Disk time saved", SAVED, (v) => saved(v.promotion)],
  ["Cost", COST, (v) => nanoseconds(v.promotion?.cost_ns)],
  ["Saved to cost", RATIO, (v) => savedToCost(v.promotion)],
];

/** `412 s ± 38 s`. */
function saved(promotion: Promotion | null): string {
  if (promotion?.saved_ns == null) return UNKNOWN;
  return `${nanoseconds(promotion.saved_ns)} ± ${nanoseconds(promotion.saved_error_ns)}`;
}

function budget(promotion: Promotion | null): string {
  const left = promotion?.write_budget_left_bytes;
  return left == null ? UNKNOWN : bytes(Math.max(0, left));
}

/** `4`: what each second of cost has saved. */
function savedToCost(promotion: Promotion | null): string {
  if (promotion?.saved_ns == null || !promotion.cost_ns) return UNKNOWN;
  return (promotion.saved_ns / promotion.cost_ns).toFixed(1);
}

/** What is moved now, or would be. */
export function sentenceOf(volume: Volume, promotion: Promotion): string {
  const reason = promotion.reason || promotion.phase;
  if (volume.mode === "enforce") return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}`;
  if (promotion.pending_bytes === 0) return `In enforce: ${reason}`;
  const rest =
    promotion.held_out_bytes > 0 ? `, and hold out ${bytes(promotion.held_out_bytes)}` : "";
  return `In enforce: would move ${bytes(promotion.pending_bytes)}${rest}`;
}

function remarkOf(volume: Volume, promotion: Promotion): string {
  if (volume.mode !== "enforce") {
    return `Nothing is moved in mode ${volume.mode}, and what moves save can be measured only in enforce.`;
  }
  if (promotion.phase === "moves" && promotion.mover_why !== "") {
    return `Moves wait: ${promotion.mover_why}.`;
  }
  return "";
}

/** What switching it on takes. */
function offer(volume: Volume): HTMLElement[] {
  if (volume.heat === null) {
    return [h("p", {}, "This version of ebbgated does not move data into the cache.")];
  }
  if (volume.kind === "dm-writecache") {
    return [h("p", {}, "dm-writecache does not cache reads, so nothing can be moved into it.")];
  }
  return [
    h(
      "p",
      {},
      `Off: policy ${volume.policy} does not name the strategy promote_hot, which moves what users ` +
        "miss again and again into the cache, as long as that is measured to pay.",
    ),
    h(
      "p",
      {},
      "If the volume has a policy file, add ",
      h("code", {}, "- promote_hot"),
      " to its strategies. Else save this as a new file:",
    ),
    command(policyText(volume.title), "Policy with promote_hot"),
    h(
      "p",
      { class: "hint" },
      "In mode advise ebbgate then shows what it would move, and changes nothing.",
    ),
    h("p", {}, h("a", { href: format("policy") }, "Edit policies")),
  ];
}

function policyText(title: string): string {
  return `version: 1
name: warm-${title.replace(/[^A-Za-z0-9]+/g, "-").toLowerCase()}
why: Move what users miss again and again into the cache.
match: {volume: ${JSON.stringify(title)}}
strategies:
  - idle_destage
  - stream_bypass
  - promote_hot
`;
}
