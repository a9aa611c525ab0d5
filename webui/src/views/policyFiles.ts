// SPDX-License-Identifier: GPL-2.0-only
// The texts that the policy editor can show: files, shipped policies and a new one.
import type { Policies } from "../api/types";
import { plural } from "../lib/format";
import { format } from "../lib/route";
import { button, h, table } from "./dom";

/** Before the names of texts that are not files: a new one, and copies of shipped policies. */
export const NEW = "+";

export const NEW_TEXT = `version: 1
name: my-policy
why: Describe what this policy is for.
match: {volume: "*"}
strategies:
  - idle_destage
  - stream_bypass
`;

/** The text without changes; empty for a file that is gone. */
export function textOf({ files, shipped }: Policies, file: string): string {
  const found =
    files.find((each) => each.name === file) ?? shipped.find((each) => NEW + each.name === file);
  return found?.text ?? (file === NEW ? NEW_TEXT : "");
}

/** The name to save it under. */
export function nameOf(file: string): string {
  return file.startsWith(NEW) ? "my-policy" : file;
}

export function fileList(
  policies: Policies,
  choose: (file: string, body: string) => void,
): HTMLElement[] {
  const { files, shipped } = policies;
  const own = files.map((file) =>
    h(
      "li",
      {},
      button(
        [
          file.name,
          !file.ok &&
            h(
              "span",
              { class: "badge", "data-weight": "fault" },
              plural(file.errors.length, "error"),
            ),
        ],
        () => choose(file.name, file.text ?? ""),
        { class: "pick" },
      ),
    ),
  );
  const given = shipped.map((each) =>
    h(
      "li",
      {},
      button([each.name, h("small", {}, each.why)], () => choose(NEW + each.name, each.text), {
        class: "pick",
      }),
    ),
  );
  return [
    h("h2", {}, "Your files"),
    own.length > 0 ? h("ul", {}, own) : h("p", { class: "hint" }, folderHint(policies)),
    button("New", () => choose(NEW, NEW_TEXT)),
    h("h2", {}, "Start from a shipped policy"),
    h("ul", {}, given),
  ];
}

function folderHint(policies: Policies): string {
  if (policies.folder_why) return `${policies.folder}: ${policies.folder_why}`;
  return "None. All volumes use adaptive.";
}

export function effectiveTable(policies: Policies): HTMLElement {
  if (policies.effective.length === 0) return h("p", { class: "hint" }, "No volumes found.");
  const rows = policies.effective.map((each) => [
    h("a", { href: format("volume", each.volume) }, each.title),
    each.policy,
    each.overlay ?? "",
    each.file ?? "shipped",
  ]);
  return table("Policies in use", ["Volume", "Policy", "Schedule entry", "File"], rows);
}
