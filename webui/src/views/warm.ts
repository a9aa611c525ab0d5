// SPDX-License-Identifier: GPL-2.0-only
// The dialog that begins a warm-up: of a file, or of a range of a volume.
import type { Volume } from "../api/types";
import { parseRange, rangeLabel } from "../lib/size";
import { requestChange } from "./actions";
import { h, type Child } from "./dom";
import { field, form, pathField } from "./form";

const MIB = 2 ** 20;

/** What is warmed: in words, and as the request says it. */
interface Target {
  title: string;
  volume: string | null;
  args: Record<string, unknown>;
}

/** The fields of one kind of target. `read`: the target, or what is wrong. */
interface Part {
  label: string;
  element: HTMLFieldSetElement;
  read: () => Target | string;
}

export function askWarm(volume: Volume): void {
  const parts = [filePart(), rangePart(volume)];
  const what = h(
    "select",
    {},
    parts.map((part) => h("option", { value: part.label }, part.label)),
  );
  const chosen = (): Part | undefined => parts.find((part) => part.label === what.value);
  const show = (): void => {
    for (const { element, label } of parts) {
      element.hidden = label !== what.value;
      // A field that is hidden must not keep the form from being sent.
      element.disabled = element.hidden;
    }
  };
  what.addEventListener("change", show);
  show();
  const rate = h("input", { type: "number", min: "1", step: "1" });
  const content = [
    field("What", what),
    parts.map((part) => part.element),
    field("MiB per second", rate, "At most. Empty: no limit."),
    h(
      "p",
      { class: "hint" },
      "It is read into the cache while users do not need the disk, else slowly; no data is changed.",
    ),
  ];
  form(`Warm data on ${volume.title}`, content, "Warm", () => {
    const target = chosen()?.read() ?? "Choose what to warm.";
    if (typeof target === "string") return target;
    const limit = rate.value === "" ? {} : { bandwidth_bytes_per_s: rate.valueAsNumber * MIB };
    const title = `${volume.title}: warm ${target.title}`;
    void requestChange(title, "warm", target.volume, { ...target.args, ...limit });
    return null;
  });
}

function filePart(): Part {
  const path = pathField("Its full path on the server.");
  const read = (): Target | string => {
    const wrong = path.problem();
    if (wrong !== null) return wrong;
    return { title: path.value(), volume: null, args: { path: path.value() } };
  };
  return { label: "A file", element: group("File", path.content), read };
}

function rangePart(volume: Volume): Part {
  const size = (value: string, placeholder: string): HTMLInputElement =>
    h("input", {
      type: "text",
      autocomplete: "off",
      autocapitalize: "off",
      required: true,
      value,
      placeholder,
    });
  const from = size("0", "0");
  const to = size("", "10GiB");
  const content = [
    field("From", from, "Where the range begins on the volume, with a unit: 512MiB, 1.5GiB."),
    field("To", to, "Where it ends. The range must fit into nine tenths of the cache."),
  ];
  const read = (): Target | string => {
    const range = parseRange(from.value, to.value);
    if (typeof range === "string") return range;
    return { title: rangeLabel(range), volume: volume.volume, args: { ...range } };
  };
  return { label: `A range of ${volume.title}`, element: group("Range", content), read };
}

function group(label: string, content: Child): HTMLFieldSetElement {
  return h("fieldset", { class: "fields", "aria-label": label }, content);
}
