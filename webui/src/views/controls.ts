// SPDX-License-Identifier: GPL-2.0-only
// Changes of a volume: mode, hold, release, drain, clean, set, warm, pin.
import type { Volume } from "../api/types";
import { parseNs, untilClockNs } from "../lib/duration";
import { knobValue, plural } from "../lib/format";
import { serverNow } from "../state";
import { confirm, open } from "./dialog";
import { attribute, button, h, text } from "./dom";
import { field, form } from "./form";
import { jobList } from "./jobs";
import { askReleaseAll, endHold, overrideList, rowsOf } from "./overrides";
import { askPin, pinGroup } from "./pins";
import { requestChange } from "./actions";

const MODES: readonly (readonly [string, string])[] = [
  ["observe", "Measures and records; changes nothing."],
  ["advise", "Shows what it would do; changes nothing."],
  ["enforce", "Changes settings; restores the originals when it stops."],
];

// Empty: no time limit.
const HOLDS = ["10 min", "1 h", "8 h", ""] as const;

export interface Controls {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function controls(): Controls {
  let now: Volume | null = null;
  const withVolume = (act: (volume: Volume) => void) => (): void => (now ? act(now) : undefined);
  const modes = MODES.map(([mode, about]) =>
    h(
      "button",
      {
        type: "button",
        title: about,
        onclick: withVolume((volume) => void changeMode(volume, mode)),
      },
      mode,
    ),
  );
  const hold = button(
    "Hold …",
    withVolume((volume) => (volume.frozen ? void endHold(volume) : askHold(volume))),
  );
  const clean = button("Clean …", withVolume(askClean));
  const drain = button("Drain …", withVolume(askDrain));
  const releaseAll = button(
    "Release all …",
    withVolume((volume) => void askReleaseAll(volume)),
  );
  const pin = button("Pin …", askPin);
  const jobs = jobList();
  const lists = [overrideList(), jobs, pinGroup()];
  const element = h(
    "section",
    { class: "controls", "aria-label": "Changes" },
    h("div", { class: "segmented", role: "group", "aria-label": "Mode" }, modes),
    h(
      "div",
      { class: "buttons" },
      hold,
      drain,
      clean,
      button("Change a setting …", withVolume(askSet)),
      jobs.begin,
      pin,
      releaseAll,
    ),
    lists.map((each) => each.element),
  );
  return {
    element,
    update: (volume) => {
      now = volume;
      modes.forEach((each, i) =>
        attribute(each, "aria-pressed", String(MODES[i]?.[0] === volume.mode)),
      );
      text(hold, volume.frozen ? "End hold" : "Hold …");
      drain.hidden = volume.kind === "dm-writecache";
      clean.hidden = volume.kind === "bcache";
      pin.hidden = volume.kind === "dm-writecache";
      releaseAll.hidden = rowsOf(volume).length === 0;
      lists.forEach((each) => each.update(volume));
    },
  };
}

async function changeMode(volume: Volume, mode: string): Promise<void> {
  if (mode === volume.mode) return;
  if (mode === "enforce") {
    const confirmed = await confirm(
      `Enforce ${volume.title}`,
      [
        h(
          "p",
          {},
          "ebbgate will change settings of this volume by itself. It restores the originals when you choose advise or observe, and when ebbgated stops or crashes.",
        ),
        h("p", { class: "hint" }, `Now: ${volume.now}`),
      ],
      "Enforce",
    );
    if (!confirmed) return;
  }
  await requestChange(`${volume.title}: ${mode}`, "mode", volume.volume, { mode });
}

function askHold(volume: Volume): void {
  const choice = h(
    "select",
    {},
    HOLDS.map((time) => h("option", { value: time }, time || "until released")),
  );
  const content = field(
    "Duration",
    choice,
    "ebbgate changes no setting of this volume until the time is over or you choose End hold.",
  );
  form(`Hold ${volume.title}`, content, "Hold", () => {
    const time = parseNs(choice.value);
    const args = time === null ? { on: true } : { on: true, for_ns: time };
    const title = `${volume.title}: hold ${choice.value && `for ${choice.value}`}`.trim();
    void requestChange(title, "hold", volume.volume, args);
    return null;
  });
}

function askDrain(volume: Volume): void {
  const input = h("input", { type: "text", value: "2h", autocomplete: "off" });
  const content = field(
    "Deadline",
    input,
    "A time of day in this browser's time zone, such as 06:00, or a duration, such as 2h or 30min. All dirty data is written back by then, no faster than necessary.",
  );
  form(`Drain ${volume.title}`, content, "Drain", () => {
    const time = parseNs(input.value) ?? untilClockNs(input.value, new Date(serverNow() * 1000));
    if (time === null)
      return "Enter a duration such as 2h or 30min, or a time of day such as 06:00.";
    void requestChange(`${volume.title}: drain`, "drain", volume.volume, { for_ns: time });
    return null;
  });
}

function askClean(volume: Volume): void {
  const input = h("input", { type: "text", value: "1h", autocomplete: "off" });
  const content = field(
    "Stop after",
    input,
    "Writes back all dirty data now, also under load, which slows users down. Ends when the volume is clean.",
  );
  form(`Clean ${volume.title}`, content, "Clean", () => {
    const time = parseNs(input.value);
    if (time === null) return "Enter a duration such as 1h or 30min.";
    void requestChange(`${volume.title}: clean`, "clean", volume.volume, { within_ns: time });
    return null;
  });
}

function askSet(volume: Volume): void {
  const all = Object.entries(volume.knobs).sort(([a], [b]) => (a < b ? -1 : 1));
  const settable = all.filter(([, knob]) => knob.settable).map(([name]) => name);
  if (settable.length === 0) {
    const why = `${volume.title} (${volume.kind}) has no setting that can be changed now.`;
    open(`Change a setting of ${volume.title}`, h("p", {}, why));
    return;
  }
  const others = all.length - settable.length;
  const knob = h(
    "select",
    {},
    settable.map((name) => h("option", { value: name }, name)),
  );
  const value = h("input", { type: "text", autocomplete: "off", required: true });
  const time = h("input", { type: "text", autocomplete: "off", placeholder: "10min" });
  const now = h("p", { class: "hint" });
  const show = (): void =>
    text(now, `Now: ${knobValue(knob.value, volume.knobs[knob.value]?.value)}`);
  knob.addEventListener("change", show);
  show();
  const content = [
    field(
      "Setting",
      knob,
      others > 0 ? `${plural(others, "more setting")} cannot be changed here.` : "",
    ),
    now,
    field(
      "Value",
      value,
      "With a unit (4MiB, 10MiB/s, 20%, 2ms), or without one as the kernel takes it.",
    ),
    field("Duration", time, "Such as 10min. Empty: until released."),
  ];
  form(`Change a setting of ${volume.title}`, content, "Set", () => {
    const lasting = time.value.trim() === "" ? undefined : parseNs(time.value);
    if (lasting === null) return "Enter a duration such as 10min, or leave the field empty.";
    const args = { knob: knob.value, value: value.value.trim() };
    void requestChange(
      `${volume.title}: ${args.knob} ${args.value}`,
      "set",
      volume.volume,
      lasting === undefined ? args : { ...args, for_ns: lasting },
    );
    return null;
  });
}
