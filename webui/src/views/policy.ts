// SPDX-License-Identifier: GPL-2.0-only
// Policies: which volume uses which, and an editor with check, dry run and save.
import { get, post } from "../api/client";
import type { Checked, Policies, PolicyError } from "../api/types";
import type { Schema } from "../lib/complete";
import { plural } from "../lib/format";
import { format, type Route } from "../lib/route";
import { generation } from "../state";
import { confirm } from "./dialog";
import { button, fill, h, text, uid } from "./dom";
import { dryRun } from "./dryRun";
import { editor, type Editor } from "./editor";
import { effectiveTable, fileList, nameOf, NEW, NEW_TEXT, textOf } from "./policyFiles";
import { errorItems, noteItems } from "./problems";
import { retry } from "./retry";
import type { View } from "./view";
import { errorText, requestChange } from "./actions";

const CHECK_AFTER_MS = 500;

interface Draft {
  name: string;
  text: string;
  /** The text that was edited. */
  base: string;
}

/** Unsaved texts by `Page.file`, the newest last; they outlive the page. */
const drafts = new Map<string, Draft>();
window.addEventListener("beforeunload", (event) => {
  if (drafts.size > 0) event.preventDefault();
});

interface Page {
  policies: Policies | null;
  schema: Schema | null;
  edit: Editor;
  name: HTMLInputElement;
  errors: HTMLElement;
  verdict: HTMLElement;
  files: HTMLElement;
  effective: HTMLElement;
  timer: number | undefined;
  /** Says that the text is a draft. */
  note: HTMLElement;
  /** The file in the editor; otherwise `NEW` and the name of a shipped policy. */
  file: string;
  /** The text last loaded or saved; other text is not discarded without a confirmation. */
  saved: string;
}

export function policyPage(parent: HTMLElement, route: Route): View {
  const page = make();
  const trial = dryRun(() => ({ text: page.edit.get(), policies: page.policies }));
  const label = h("label", { for: page.name.id }, "File name, without .yaml");
  const actions = h(
    "div",
    { class: "buttons" },
    button("Validate", () => void check(page, true)),
    button("Save …", () => void save(page), { class: "button primary" }),
    button("Remove …", () => void remove(page)),
  );
  parent.append(
    h("h1", {}, "Policy"),
    h(
      "p",
      { class: "lead" },
      "Each volume uses the first file that matches it, or the policy adaptive if none does. A change takes effect once ebbgated has accepted it.",
    ),
    h(
      "div",
      { class: "policy" },
      h("div", { class: "policy-side" }, page.files),
      h(
        "div",
        { class: "policy-main" },
        h("div", { class: "field" }, label, page.name),
        page.note,
        page.edit.element,
        page.verdict,
        page.errors,
        actions,
        trial.element,
      ),
    ),
    h("h2", {}, "Policies in use"),
    page.effective,
  );
  const policies = retry(
    () => get<Policies>("policies"),
    (found) => show(page, found, route.name),
    (problem) => text(page.verdict, errorText(problem)),
  );
  const language = retry(
    () => get<Schema>("policy-schema"),
    (schema) => {
      page.schema = schema;
    },
    // Without a schema there is no completion; the server validates the text anyway.
    () => undefined,
  );
  language.reload();
  const stop = generation.listen(policies.reload);
  return {
    destroy: () => {
      stop();
      policies.stop();
      language.stop();
      window.clearTimeout(page.timer);
    },
  };
}

function make(): Page {
  const page: Page = {
    policies: null,
    schema: null,
    edit: editor(
      () => page.schema,
      () => changed(page),
    ),
    name: h("input", { id: uid("name"), type: "text", autocomplete: "off", spellcheck: "false" }),
    errors: h("ol", { class: "problems" }),
    verdict: h("p", { class: "verdict-line", role: "status" }),
    files: h("nav", { "aria-label": "Policies" }),
    effective: h("div"),
    timer: undefined,
    note: h("p", { class: "remark", role: "status", hidden: true }),
    file: NEW,
    saved: NEW_TEXT,
  };
  page.edit.set(NEW_TEXT);
  page.name.value = nameOf(NEW);
  page.name.addEventListener("input", () => keepDraft(page));
  return page;
}

async function read(page: Page, wanted: string): Promise<void> {
  show(page, await get<Policies>("policies"), wanted);
}

function show(page: Page, found: Policies, wanted: string): void {
  page.policies = found;
  fill(
    page.files,
    fileList(found, (file, body) => void choose(page, file, body)),
  );
  fill(page.effective, effectiveTable(found));
  const { files } = found;
  const first = files.find((file) => file.name === wanted) ?? files[0];
  const draft = wanted === "" ? [...drafts.keys()].at(-1) : undefined;
  const file = draft ?? first?.name ?? NEW;
  const untouched = page.saved === NEW_TEXT && page.edit.get() === NEW_TEXT;
  if (untouched && (file !== NEW || drafts.has(NEW))) load(page, file, textOf(found, file));
  else void check(page, false);
}

async function choose(page: Page, file: string, body: string): Promise<void> {
  const edited = page.edit.get() !== page.saved;
  if (
    edited &&
    !(await confirm(
      "Discard changes?",
      h("p", {}, "The text in the editor is not saved."),
      "Discard",
    ))
  )
    return;
  drafts.delete(page.file);
  load(page, file, body);
}

async function discard(page: Page): Promise<void> {
  if (page.policies) await choose(page, page.file, textOf(page.policies, page.file));
}

/** Shows a file, with the changes that were not saved. */
function load(page: Page, file: string, body: string): void {
  const draft = drafts.get(file);
  page.file = file;
  page.name.value = draft?.name ?? nameOf(file);
  page.saved = draft?.base ?? body;
  page.edit.set(draft?.text ?? body);
  page.note.hidden = !draft;
  if (draft)
    fill(
      page.note,
      "These changes are not saved. ",
      draft.base !== body && "The file has changed since. ",
      button("Discard …", () => void discard(page), { class: "button small" }),
    );
  void check(page, false);
}

function keepDraft(page: Page): void {
  const body = page.edit.get();
  drafts.delete(page.file);
  if (body === page.saved) page.note.hidden = true;
  else drafts.set(page.file, { name: page.name.value, text: body, base: page.saved });
}

function changed(page: Page): void {
  keepDraft(page);
  window.clearTimeout(page.timer);
  page.timer = window.setTimeout(() => void check(page, false), CHECK_AFTER_MS);
}

async function check(page: Page, jump: boolean): Promise<boolean> {
  const body = page.edit.get();
  try {
    const found = await post<Checked>("policies/check", {
      name: page.name.value.trim() || "policy",
      text: body,
    });
    if (body !== page.edit.get()) return false;
    showProblems(page, found.errors, found.notes);
    if (jump && found.errors[0]) page.edit.goto(found.errors[0].line, found.errors[0].column);
    return found.ok;
  } catch (problem) {
    showUnknown(page, problem);
    return false;
  }
}

/** The text may be valid or not: the server could not say. */
function showUnknown(page: Page, problem: unknown): void {
  delete page.verdict.dataset["ok"];
  text(page.verdict, errorText(problem));
}

function showProblems(
  page: Page,
  errors: readonly PolicyError[],
  notes: readonly PolicyError[],
): void {
  page.edit.problems(errors);
  page.verdict.dataset["ok"] = String(errors.length === 0);
  const valid = notes.length === 0 ? "✓ Valid" : `✓ Valid, with ${plural(notes.length, "note")}:`;
  text(page.verdict, errors.length === 0 ? valid : `✗ ${plural(errors.length, "error")}:`);
  fill(
    page.errors,
    errors.length === 0 ? noteItems(page.edit, notes) : errorItems(page.edit, errors),
  );
}

async function save(page: Page): Promise<void> {
  const name = page.name.value.trim();
  if (!(await check(page, true))) return;
  const effect = await effectOfSave(page, name).catch((problem: unknown) => {
    showUnknown(page, problem);
  });
  if (effect === undefined) return;
  const confirmed = await confirm(
    `Save ${name}.yaml`,
    h("p", {}, `${effect} ebbgated checks it again and applies it at once.`),
    "Save",
  );
  if (!confirmed) return;
  const body = page.edit.get();
  const file = page.file;
  const outcome = await requestChange(`Save policy ${name}`, "policy_save", null, {
    name,
    text: body,
  });
  if (outcome?.ok !== true) return;
  // Meanwhile another page or file may have been opened, or the text changed.
  if (drafts.get(file)?.text === body) drafts.delete(file);
  if (!page.edit.element.isConnected || page.file !== file) return;
  page.file = name;
  page.saved = body;
  keepDraft(page);
  history.replaceState(null, "", format("policy", name));
  await read(page, name).catch((problem: unknown) => text(page.verdict, errorText(problem)));
}

/** What a save does to the file that is there now: others may have saved one since. */
async function effectOfSave(page: Page, name: string): Promise<string> {
  const { files } = await get<Policies>("policies");
  const there = files.find((file) => file.name === name);
  if (!there) return "Creates a new file.";
  if (name !== page.file || there.text === page.saved) return "Replaces the existing file.";
  return `Replaces a text that was saved after you had opened the file; it is kept in ${name}.yaml~.`;
}

async function remove(page: Page): Promise<void> {
  const name = page.name.value.trim();
  const confirmed = await confirm(
    `Remove ${name}.yaml`,
    h("p", {}, "Its volumes then use the next file that matches them, or adaptive."),
    "Remove",
  );
  if (!confirmed) return;
  const outcome = await requestChange(`Remove policy ${name}`, "policy_remove", null, { name });
  if (outcome?.ok !== true) return;
  await read(page, "").catch((problem: unknown) => text(page.verdict, errorText(problem)));
}
