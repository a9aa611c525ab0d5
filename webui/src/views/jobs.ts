// SPDX-License-Identifier: GPL-2.0-only
// Warm-ups of a volume: a list that can pause and end each one, and a button for another one.
import type { Job, Volume } from "../api/types";
import { bytes, plural } from "../lib/format";
import { targetLabel } from "../lib/size";
import { requestChange } from "./actions";
import { button, fill, h, text } from "./dom";
import { askWarm } from "./warm";

const OVER: readonly string[] = ["done", "failed", "cancelled"];
const SHOWN_OVER = 3;

export interface Jobs {
  element: HTMLElement;
  /** The button that begins a job. */
  begin: HTMLElement;
  update: (volume: Volume) => void;
}

export function jobList(): Jobs {
  const element = h("ul", { class: "overrides", "aria-label": "Warm-ups" });
  let now: Volume | null = null;
  let shown = "";
  const begin = button("Warm …", () => {
    if (now) askWarm(now);
  });
  const update = (volume: Volume): void => {
    now = volume;
    begin.hidden = volume.kind === "dm-writecache";
    const jobs = listed(volume.jobs);
    // By its buttons: a job changes between reading and waiting all the time.
    const key = JSON.stringify(jobs.map((job) => [job.id, stage(job)]));
    if (key !== shown) {
      shown = key;
      fill(
        element,
        jobs.map((job) => item(volume, job)),
      );
    }
    jobs.forEach((job, i) => {
      const label = element.children[i]?.firstElementChild;
      if (label) text(label, jobLabel(job));
    });
  };
  return { element, begin, update };
}

/** All that are under way, and the last ones that are over. */
function listed(jobs: readonly Job[]): Job[] {
  const over = jobs.filter((job) => OVER.includes(job.state));
  return [...jobs.filter((job) => !OVER.includes(job.state)), ...over.slice(-SHOWN_OVER)];
}

function stage(job: Job): "over" | "paused" | "under way" {
  if (OVER.includes(job.state)) return "over";
  return job.state === "paused" ? "paused" : "under way";
}

function item(volume: Volume, job: Job): HTMLElement {
  const act = (label: string, action: string): HTMLElement =>
    button(label, () => void control(volume, job, action), {
      class: "button small",
      "aria-label": `${label} job ${job.id}`,
    });
  if (stage(job) === "over") return h("li", {}, h("span"));
  const other = stage(job) === "paused" ? act("Resume", "resume") : act("Pause", "pause");
  return h("li", {}, h("span"), other, act("Cancel", "cancel"));
}

function jobLabel(job: Job): string {
  const progress = OVER.includes(job.state)
    ? ""
    : `, ${bytes(job.read_bytes)} of ${bytes(job.total_bytes)}`;
  const why = job.why === "" ? "" : `: ${job.why}`;
  const left = Object.entries(job.left_out).map(([reason, n]) => `; without ${bytes(n)} ${reason}`);
  const others = othersLabel(job);
  return `Warm-up of ${targetLabel(job.target)}, ${job.state}${progress}${why}${left.join("")}${others}`;
}

/** `; users' misses brought in 310 blocks, and reads were stopped for it 2 times`, or nothing. */
function othersLabel(job: Job): string {
  if (!job.other_promotions) return "";
  const holds = job.promotion_holds;
  const stops = holds ? `, and reads were stopped for it ${plural(holds, "time")}` : "";
  return `; users' misses brought in ${plural(job.other_promotions, "block")}${stops}`;
}

async function control(volume: Volume, job: Job, action: string): Promise<void> {
  await requestChange(`${volume.title}: ${action} job ${job.id}`, "job", null, {
    job: job.id,
    action,
  });
}
