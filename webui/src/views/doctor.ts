// SPDX-License-Identifier: GPL-2.0-only
// Doctor: what works on this machine, what the probe costs, and what is missing.
import { get } from "../api/client";
import type { DeviceReport, DoctorReport, Health, VolumeReport } from "../api/types";
import {
  ago,
  bytes,
  count,
  dateTime,
  knobValue,
  nanoseconds,
  plural,
  seconds,
} from "../lib/format";
import { format } from "../lib/route";
import { generation, health } from "../state";
import { facts, fill, h, table, text, uncheckedList, type Child } from "./dom";
import { retry } from "./retry";
import type { View } from "./view";
import { errorText } from "./actions";

export function doctorPage(parent: HTMLElement): View {
  const state = h("p", { class: "hint", role: "status" }, "Loading …");
  const alive = h("div");
  const report = h("div");
  report.className = "page";
  parent.append(
    h("h1", {}, "Doctor"),
    h(
      "p",
      { class: "lead" },
      "What works on this machine, what the probe costs, and what is missing.",
    ),
    h("section", { class: "card" }, h("h2", {}, "Health"), alive),
    state,
    report,
  );
  const { reload, stop } = retry(
    () => get<DoctorReport>("doctor"),
    (found) => {
      fill(report, drawn(found));
      text(state, "");
    },
    (problem) => text(state, errorText(problem)),
  );
  const stops = [
    health.listen((known) => fill(alive, known ? healthFacts(known) : "Loading …")),
    generation.listen(reload),
    stop,
  ];
  return { destroy: () => stops.forEach((stop) => stop()) };
}

function healthFacts(known: Health): HTMLElement {
  const { daemon } = known;
  const runs =
    daemon.alive === null
      ? "unknown"
      : daemon.alive
        ? `running, pid ${daemon.pid ?? "unknown"}`
        : "not running";
  return facts([
    ["ebbgated", `${runs}${daemon.version ? `, version ${daemon.version}` : ""}`],
    ["Last update", daemon.age_s === null ? "never" : ago(daemon.age_s)],
    ["Started", dateTime(daemon.started_unix_s)],
    ["Sampling interval", seconds(daemon.tick_s)],
    [
      "Probe",
      daemon.probe
        ? `${daemon.probe.kind}: ${daemon.probe.state}, ${plural(daemon.probe.restarts, "restart")}`
        : "unknown",
    ],
    ["History", known.history.ok ? "readable" : (known.history.why ?? "cannot be read")],
    ["Changes", known.intents.ok ? "accepted" : (known.intents.why ?? "not possible")],
    ...daemon.errors.map((error) => ["Error", error] as const),
  ]);
}

function drawn(report: DoctorReport): Child {
  const missing = report.missing.map((each) => h("p", { class: "remark" }, each));
  return [
    missing,
    h(
      "div",
      { class: "charts" },
      h("section", { class: "card" }, h("h2", {}, "Kernel and probe"), kernel(report)),
      h("section", { class: "card" }, h("h2", {}, "Signals"), signals(report.signals)),
    ),
    h("section", { class: "card" }, h("h2", {}, "Probe overhead"), cost(report.cost)),
    report.volumes.map(volume),
    uncheckedList(report.unknown),
  ];
}

function kernel(report: DoctorReport): HTMLElement {
  const { probe } = report;
  return facts([
    ["Kernel", report.kernel.release],
    [
      "BTF",
      report.kernel.btf
        ? "yes"
        : probe.kind === "bcc"
          ? "no: the bcc probe runs"
          : "no: the probe needs ebbgate-probe-bcc",
    ],
    [
      "Probe",
      probe.kind === null ? (probe.why ?? "unknown") : `${probe.kind}: ${probe.state ?? "unknown"}`,
    ],
  ]);
}

function signals(all: Readonly<Record<string, string>>): HTMLElement {
  const rows = Object.entries(all).map(([signal, state]) => [signal, mark(state === "ok", state)]);
  if (rows.length === 0)
    return h("p", { class: "hint" }, "Unknown: ebbgated or its probe is not running.");
  return table("Signals", ["Signal", "State"], rows);
}

function mark(good: boolean, word: string): HTMLElement {
  return h(
    "span",
    { class: "holds", "data-holds": good ? "true" : "unknown" },
    `${good ? "✓" : "✗"} ${word}`,
  );
}

function cost(report: DoctorReport["cost"]): Child {
  if (report.why) {
    return [
      h("p", { class: "hint" }, report.why),
      h(
        "p",
        {},
        "To measure it, run ",
        h("code", { class: "figure" }, "ebbgate doctor --measure 10"),
      ),
    ];
  }
  const rows = report.programs.map((each) => [
    h("code", {}, each.name),
    count(each.runs),
    nanoseconds(each.ns_per_run),
  ]);
  return [
    h(
      "p",
      {},
      `${nanoseconds(report.ns_per_run)} per event, ${nanoseconds(report.empty_run_ns)} of it for the measurement itself; ${count(report.runs)} events in ${nanoseconds(report.window_ns)}.`,
    ),
    table("Overhead of each BPF program", ["Program", "Runs", "Per run"], rows, {
      class: "numbers",
    }),
  ];
}

function volume(each: VolumeReport): HTMLElement {
  const knobs = each.knobs.map((knob) => [
    h("code", { title: knob.path }, knob.name),
    knobValue(knob.name, knob.value),
    knob.touch,
    knob.about,
  ]);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, h("a", { href: format("volume", each.volume) }, each.title)),
    facts([
      [
        "Kind",
        `${each.kind}, ${each.cache_mode ?? "cache mode unknown"}, ${each.state ?? "state unknown"}`,
      ],
      ["Backing device", device(each.backing)],
      ["Cache device", each.caches.map(device).join("; ") || "none"],
    ]),
    h(
      "details",
      {},
      h("summary", {}, plural(each.knobs.length, "setting")),
      table(`Settings of ${each.title}`, ["Setting", "Value", "In ebbgate", "Description"], knobs),
    ),
  );
}

function device(each: DeviceReport): string {
  const turns = each.rotational === null ? "" : each.rotational ? "rotational" : "not rotational";
  return `${each.name} (${[bytes(each.size_bytes), turns, each.scheduler ?? ""].filter(Boolean).join(", ")})`;
}
