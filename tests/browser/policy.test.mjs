// SPDX-License-Identifier: GPL-2.0-only
// Policies: errors, saving, dry run and completion.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as harness from "./harness.mjs";

const test = harness.testFile();
const NOTED = `version: 1
name: noted
match: {kind: dm-cache}
limits: {destage_rate: {max: 1MiB/s}}
`;

test("a policy error is shown at its line, and a valid policy is saved", async (page) => {
  await harness.visit(page, "policy");
  const area = page.getByLabel("Policy text");
  const name = "browser-test";
  const text = (key) => `version: 1\nname: ${name}\nobjectives: {${key}: 30ms}\n`;
  await area.fill(text("read_latncy_p99"));
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByRole("button", { name: /^Go to line 3/ }).waitFor();
  assert.match(await page.locator(".problems").textContent(), /read_latency_p99/);
  assert.match(await page.locator(".line-numbers .wrong").textContent(), /3/);
  await harness.shot(page, "policy-error");
  await area.fill(text("read_latency_p99"));
  await page.getByText("✓ Valid").waitFor();
  assert.equal(await page.locator(".line-numbers .wrong").count(), 0);
  await page.getByLabel("File name, without .yaml").fill(name);
  await page.getByRole("button", { name: "Save …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page
    .getByRole("dialog", { name: "Token for changes" })
    .getByLabel("Token")
    .fill(harness.TOKEN);
  await page.keyboard.press("Enter");
  await page.locator('.toast[data-state="good"]', { hasText: name }).waitFor();
});

test("text that is not saved is kept while another page is shown", async (page) => {
  await harness.visit(page, "policy");
  const area = page.getByLabel("Policy text");
  const note = page.getByText("These changes are not saved.");
  await page.getByText("✓ Valid").waitFor();
  const before = await area.inputValue();
  await area.press("Control+End");
  await area.pressSequentially("# mine");
  assert.equal(await note.count(), 0);
  await page.getByRole("link", { name: "Overview" }).click();
  await page.waitForSelector(harness.PAGES.overview);
  await page.getByRole("link", { name: "Policy", exact: true }).click();
  await note.waitFor();
  assert.equal(await area.inputValue(), `${before}# mine`);
  await harness.shot(page, "policy-draft");
  const asked = page.waitForEvent("dialog");
  await page.close({ runBeforeUnload: true });
  await (await asked).dismiss();
  await page.getByRole("button", { name: "Discard …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
  await note.waitFor({ state: "hidden" });
  assert.equal(await area.inputValue(), before);
});

test(
  "the editor says that a file was changed by others meanwhile",
  async (page) => {
    const file = join(harness.POLICIES, "shared.yaml");
    const by = (who) => `version: 1\nname: shared\nwhy: By ${who}.\nmatch: {volume: none}\n`;
    writeFileSync(file, by("one"));
    try {
      await editedByTwo(page, file, by);
    } finally {
      rmSync(file);
    }
  },
  { skip: !harness.POLICIES },
);

async function editedByTwo(page, file, by) {
  await harness.visit(page, "policy");
  const area = page.getByLabel("Policy text");
  const save = page.getByRole("button", { name: "Save …" });
  const dialog = page.getByRole("dialog", { name: "Save shared.yaml" });
  await page.getByRole("button", { name: "shared", exact: true }).click();
  await area.press("Control+End");
  await area.pressSequentially("# mine");
  await save.click();
  await dialog.getByText("Replaces the existing file.").waitFor();
  await page.keyboard.press("Escape");
  writeFileSync(file, by("another"));
  await save.click();
  await dialog.getByText("Replaces a text that was saved after you had opened the file").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Overview" }).click();
  await page.waitForSelector(harness.PAGES.overview);
  await page.getByRole("link", { name: "Policy", exact: true }).click();
  await page.getByText("The file has changed since.").waitFor();
  assert.equal(await area.inputValue(), `${by("one")}# mine`);
  await page.getByRole("button", { name: "Discard …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
  await page.getByText("The file has changed since.").waitFor({ state: "hidden" });
  assert.equal(await area.inputValue(), by("another"));
}

test(
  "a save that is answered late leaves the text that was opened meanwhile",
  async (page) => {
    const files = ["early", "later"].map((name) => join(harness.POLICIES, `${name}.yaml`));
    const by = (name) => `version: 1\nname: ${name}\nmatch: {volume: none}\n`;
    files.forEach((file, i) => writeFileSync(file, by(i ? "later" : "early")));
    try {
      await savedLate(page);
    } finally {
      files.forEach((file) => rmSync(file));
    }
  },
  { skip: !harness.POLICIES },
);

async function savedLate(page) {
  await harness.visit(page, "policy");
  const area = page.getByLabel("Policy text");
  const pick = (name) => page.getByRole("button", { name, exact: true });
  const dialog = (title) => page.getByRole("dialog", { name: title });
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route(/api\/v1\/intents$/, async (route) => {
    await held;
    await route.continue();
  });
  await pick("early").click();
  await area.press("Control+End");
  await area.pressSequentially("# mine");
  await page.getByRole("button", { name: "Save …" }).click();
  await dialog("Save early.yaml").getByRole("button", { name: "Save" }).click();
  await dialog("Token for changes").getByLabel("Token").fill(harness.TOKEN);
  await page.keyboard.press("Enter");
  await pick("later").click();
  await dialog("Discard changes?").getByRole("button", { name: "Discard" }).click();
  await page.waitForFunction(() =>
    document.querySelector("textarea").value.includes("name: later"),
  );
  const text = await area.inputValue();
  release();
  await page.locator('.toast[data-state="good"]', { hasText: "early" }).waitFor();
  assert.equal(await area.inputValue(), text);
  assert.equal(await page.getByLabel("File name, without .yaml").inputValue(), "later");
  assert.equal(await page.getByText("These changes are not saved.").count(), 0);
}

test("a key without effect is named, and the policy is valid", async (page) => {
  await harness.visit(page, "policy");
  await page.getByLabel("Policy text").fill(NOTED);
  await page.getByText("✓ Valid, with 1 note:").waitFor();
  assert.match(await page.locator(".problems").textContent(), /has no effect/);
  assert.equal(await page.locator(".line-numbers .wrong").count(), 0);
});

test(
  "a text that could not be checked is called neither valid nor wrong",
  async (page) => {
    await harness.visit(page, "policy");
    const verdict = page.locator(".verdict-line");
    await page.getByText("✓ Valid").waitFor();
    assert.equal(await verdict.getAttribute("data-ok"), "true");
    await page.route("**/policies/check", (route) => route.abort());
    await page.getByRole("button", { name: "Validate" }).click();
    await page.getByText("✓ Valid").waitFor({ state: "hidden" });
    assert.equal(await verdict.getAttribute("data-ok"), null);
    assert.notEqual(await verdict.textContent(), "");
  },
  { expected: /ERR_FAILED/ },
);

test("a dry run lists the differences", async (page) => {
  await harness.visit(page, "policy");
  await page.getByLabel("Policy text").fill("version: 1\nname: none\nstrategies: []\n");
  await page.getByText("Dry run: what this policy would have done differently").click();
  await page.getByLabel("Over the last").selectOption("1");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator(".diff li .added").first().waitFor();
  await harness.shot(page, "policy-dry-run");
});

test("the editor completes keys from the schema by keyboard", async (page) => {
  const schema = page.waitForResponse(/policy-schema/);
  await harness.visit(page, "policy");
  await (await schema).finished();
  const area = page.getByLabel("Policy text");
  await area.fill("version: 1\n");
  await area.press("Control+End");
  await area.pressSequentially("obj");
  await page.getByRole("option", { name: /^objectives/ }).waitFor();
  await area.press("Enter");
  assert.equal(await area.inputValue(), "version: 1\nobjectives: ");
  await area.press("Control+Space");
  await area.press("Escape");
  await area.press("Tab");
  assert.ok(await area.evaluate((element) => element !== document.activeElement));
});
