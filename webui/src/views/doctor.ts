// SPDX-License-Identifier: GPL-2.0-only
// Doctor: what the probe can see here, what it costs, and what is missing.
import { get } from "../api/client";
import type { Doctor, Health } from "../api/types";
import { ago, count, dateTime, nanoseconds, seconds } from "../lib/format";
import { generation, health } from "../state";
import { facts, fill, h, table, text } from "./dom";
import type { View } from "./view";
import { explained } from "./wish";

export function doctorPage(parent: HTMLElement): View {
  const state = h("p", { class: "hint", role: "status" }, "Reading …");
  const alive = h("div");
  const report = h("div");
  parent.append(h("h1", {}, "Doctor"), h("p", { class: "lead" }, "What works here, what it costs, and what stands in the way."), h("section", { class: "card" }, h("h2", {}, "Health"), alive), state, report);
  const read = async (): Promise<void> => {
    try {
      fill(report, drawn(await get<Doctor>("doctor")));
      text(state, "");
    } catch (problem) {
      text(state, explained(problem));
    }
  };
  const stops = [health.listen((known) => fill(alive, known ? healthFacts(known) : "Waiting …")), generation.listen(() => void read())];
  return { destroy: () => stops.forEach((stop) => stop()) };
}

function healthFacts(known: Health): HTMLElement {
  const { daemon } = known;
  const runs = daemon.alive === null ? "cannot be told" : daemon.alive ? `runs, pid ${daemon.pid ?? "unknown"}` : "does not run";
  return facts([
    ["Daemon", `${runs}${daemon.version ? `, version ${daemon.version}` : ""}`],
    ["Its last word", daemon.age_s === null ? "never" : ago(daemon.age_s)],
    ["Started", dateTime(daemon.started_unix_s)],
    ["Tick", seconds(daemon.tick_s)],
    ["Probe", daemon.probe ? `${daemon.probe.kind}: ${daemon.probe.state}, restarted ${count(daemon.probe.restarts)} times` : "unknown"],
    ["History", known.history.ok ? "readable" : (known.history.why ?? "cannot be read")],
    ["Wishes", known.intents.ok ? "can be made" : (known.intents.why ?? "cannot be made")],
    ...daemon.errors.map((error) => ["Error", error] as const),
  ]);
}

function drawn(_: Doctor): HTMLElement[] {
  return [table("", [], []), h("p", {}, nanoseconds(null))];
}
