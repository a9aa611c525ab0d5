// SPDX-License-Identifier: GPL-2.0-only
// What a person may ask for on a volume: mode, hold, release, drain, clean, set.
import type { Volume } from "../api/types";
import { parseNs, untilClockNs } from "../lib/duration";
import { knobValue, plural } from "../lib/format";
import { confirm, open } from "./dialog";
import { attribute, button, fill, h, text, uid, type Child } from "./dom";
import { wish } from "./wish";
import { wishWord } from "./words";

const MODES: readonly (readonly [string, string])[] = [
  ["observe", "Measures and records, decides nothing."],
  ["advise", "Decides and shows, touches nothing."],
  ["enforce", "Applies; keeps the originals and puts them back."],
];

// The last one is without an end.
const HOLDS = ["10 min", "1 h", "8 h", ""] as const;

export interface Controls {
  element: HTMLElement;
  update: (volume: Volume) => void;
}

export function controls(): Controls {
  let now: Volume | null = null;
  const withVolume = (act: (volume: Volume) => void) => () => {
    if (now) act(now);
  };
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
    withVolume((volume) => (volume.held ? void endHold(volume) : askHold(volume))),
  );
  const clean = button("Clean …", withVolume(askClean));
  const drain = button("Drain …", withVolume(askDrain));
  const wishes = h("ul", { class: "wishes" });
  const element = h(
    "section",
    { class: "controls", "aria-label": "What you may ask for" },
    h("div", { class: "segmented", role: "group", "aria-label": "Mode" }, modes),
    h(
      "div",
      { class: "buttons" },
      hold,
      drain,
      clean,
      button("Set a knob …", withVolume(askSet)),
      button(
        "Release",
        withVolume((volume) => void release(volume, null)),
      ),
    ),
    wishes,
  );
  return {
    element,
    update: (volume) => {
      now = volume;
      modes.forEach((each, i) =>
        attribute(each, "aria-pressed", String(MODES[i]?.[0] === volume.mode)),
      );
      text(hold, volume.held ? "End the hold" : "Hold …");
      drain.hidden = volume.kind === "dm-writecache";
      clean.hidden = volume.kind === "bcache";
      drawWishes(wishes, volume);
    },
  };
}

function drawWishes(box: HTMLElement, volume: Volume): void {
  const key = JSON.stringify(
    volume.wishes.map((each) => [each.kind, each.knob, each.value, each.who]),
  );
  if (box.dataset["key"] !== key) {
    box.dataset["key"] = key;
    fill(
      box,
      volume.wishes.map((each) =>
        h(
          "li",
          {},
          h("span"),
          button("Release", () => void release(volume, each.knob), { class: "button small" }),
        ),
      ),
    );
  }
  volume.wishes.forEach((each, i) => {
    const label = box.children[i]?.firstElementChild;
    if (label) text(label, wishWord(each));
  });
}

async function changeMode(volume: Volume, mode: string): Promise<void> {
  if (mode === volume.mode) return;
  if (mode === "enforce") {
    const sure = await confirm(
      `Enforce ${volume.title}`,
      [
        h(
          "p",
          {},
          "From now on ebbgate writes this volume's knobs by itself. Each original is kept in a journal and put back by ",
          h("b", {}, "advise"),
          ", by a stop, and by a crash.",
        ),
        h("p", { class: "hint" }, `Now: ${volume.now}`),
      ],
      "Enforce",
    );
    if (!sure) return;
  }
  await wish(`${volume.title}: ${mode}`, "mode", volume.volume, { mode });
}

async function endHold(volume: Volume): Promise<void> {
  await wish(`${volume.title}: end the hold`, "hold", volume.volume, { on: false });
}

function askHold(volume: Volume): void {
  const choice = h(
    "select",
    {},
    HOLDS.map((time) => h("option", { value: time }, time || "until I release it")),
  );
  const content = field(
    "For",
    choice,
    "Every knob stays where it is. A time that is over, End the hold and Release all end it.",
  );
  form(`Hold ${volume.title}`, content, "Hold", () => {
    const time = parseNs(choice.value);
    const args = time === null ? { on: true } : { on: true, for_ns: time };
    const title = `${volume.title}: hold ${choice.value && `for ${choice.value}`}`.trim();
    void wish(title, "hold", volume.volume, args);
    return null;
  });
}

async function release(volume: Volume, knob: string | null): Promise<void> {
  await wish(
    `${volume.title}: release ${knob ?? "everything"}`,
    "release",
    volume.volume,
    knob === null ? {} : { knob },
  );
}

/** A small form in a dialog; `send` answers with what is wrong, or null once it has asked. */
function form(title: string, content: Child, yes: string, send: () => string | null): void {
  const error = h("p", { class: "error", role: "alert" });
  const submit = (event: Event): void => {
    event.preventDefault();
    const wrong = send();
    if (wrong === null) dialog.close();
    else text(error, wrong);
  };
  const dialog = open(
    title,
    h(
      "form",
      { class: "form", onsubmit: submit },
      content,
      error,
      h("button", { type: "submit", class: "button primary" }, yes),
    ),
  );
}

function field(label: string, input: HTMLElement, hint = ""): Child {
  const id = uid("field");
  input.id = id;
  const about = uid("hint");
  if (hint) input.setAttribute("aria-describedby", about);
  return [
    h("label", { for: id }, label),
    input,
    hint && h("p", { class: "hint", id: about }, hint),
  ];
}

function askDrain(volume: Volume): void {
  const input = h("input", { type: "text", value: "2h", autocomplete: "off" });
  const content = field(
    "Clean by or within",
    input,
    "A time of day such as 06:00 (this browser's clock), or a time such as 2h or 30min. It drains no faster than that needs.",
  );
  form(`Drain ${volume.title}`, content, "Drain", () => {
    const time = parseNs(input.value) ?? untilClockNs(input.value, new Date());
    if (time === null) return "Write a time such as 2h, 30min or 06:00.";
    void wish(`${volume.title}: drain`, "drain", volume.volume, { for_ns: time });
    return null;
  });
}

function askClean(volume: Volume): void {
  const input = h("input", { type: "text", value: "1h", autocomplete: "off" });
  const content = field(
    "Give up after",
    input,
    "All dirty data is written back beside the load, which users feel. It ends when the volume is clean.",
  );
  form(`Clean ${volume.title}`, content, "Clean", () => {
    const time = parseNs(input.value);
    if (time === null) return "Write a time such as 1h or 30min.";
    void wish(`${volume.title}: clean`, "clean", volume.volume, { within_ns: time });
    return null;
  });
}

function askSet(volume: Volume): void {
  const all = Object.entries(volume.knobs).sort(([a], [b]) => (a < b ? -1 : 1));
  const settable = all.filter(([, knob]) => knob.settable).map(([name]) => name);
  if (settable.length === 0) {
    const why = `${volume.title} is ${volume.kind}, and has no knob that can be set now.`;
    open(`Set a knob of ${volume.title}`, h("p", {}, why));
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
    field("Knob", knob, others > 0 ? `${plural(others, "other")} of it ebbgate never writes.` : ""),
    now,
    field("Value", value, "With a unit (4MiB, 10MiB/s, 20%, 2ms), or bare as the kernel takes it."),
    field("For", time, "A time such as 10min; empty: until it is released."),
  ];
  form(`Set a knob of ${volume.title}`, content, "Set", () => {
    const lasting = time.value.trim() === "" ? undefined : parseNs(time.value);
    if (lasting === null) return "Write a time such as 10min, or nothing.";
    const args = { knob: knob.value, value: value.value.trim() };
    void wish(
      `${volume.title}: ${args.knob} ${args.value}`,
      "set",
      volume.volume,
      lasting === undefined ? args : { ...args, for_ns: lasting },
    );
    return null;
  });
}
