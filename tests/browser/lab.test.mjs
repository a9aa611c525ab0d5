// SPDX-License-Identifier: GPL-2.0-only
// Against a real daemon that tunes a real cache, under a load of bursts and gaps: tests/lab/test_web.py
// runs it. What an administrator sees and does in his first minutes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as bench from "./bench.mjs";

const VOLUME = "bcache0";
// Bursts and gaps take turns every few seconds; an emulated daemon is late now and then.
const TURN_MS = 120_000;

let browser;
before(async () => {
  browser = await bench.browse();
});
after(() => browser.close());

/** What the page shows under a label, such as `Load`. */
function figure(page, label) {
  const term = page.locator(".volume-status dt", { hasText: label }).first();
  return term.locator("xpath=following-sibling::dd");
}

/** Waits until a figure of the page has been each of these, in this order. */
async function becomes(page, label, ...wanted) {
  const value = figure(page, label);
  for (const pattern of wanted)
    await value.filter({ hasText: pattern }).waitFor({ timeout: TURN_MS });
}

test("a burst arrives, the gate closes for it and opens in the gap", async () => {
  const tab = await bench.tab(browser);
  await bench.openVolume(tab.page, VOLUME);
  await becomes(tab.page, "Load", /burst/, /idle/, /burst/);
  await becomes(tab.page, "Write-back", /held back/, /paced|pulsed|open/, /held back/);
  await bench.shot(tab.page, "lab-volume");
  tab.quiet();
  await tab.close();
});

test("what it did is one click away from why it did it", async () => {
  const tab = await bench.tab(browser);
  await bench.openVolume(tab.page, VOLUME);
  const mark = tab.page.locator(".mark:is(button)").last();
  await mark.waitFor({ timeout: TURN_MS });
  await mark.press("Enter");
  await tab.page.getByRole("dialog").waitFor();
  // Decisions that are near each other are one mark, which asks for which.
  const which = tab.page.getByRole("dialog").getByRole("button", { name: "Why" });
  if ((await which.count()) > 0) await which.first().click();
  const dialog = tab.page.getByRole("dialog").last();
  await dialog.getByText("Proposals of all strategies").waitFor();
  assert.match(await dialog.textContent(), /idle_destage/);
  assert.ok((await dialog.getByText("Measured").count()) > 0);
  await bench.shot(tab.page, "lab-explanation");
  tab.quiet();
  await tab.close();
});

test("a mode is changed with the token only, and the knobs go back with it", async () => {
  const tab = await bench.tab(browser);
  const tuned = await knobs(tab.page);
  assert.ok(tuned.length > 0, "nothing is tuned");
  await bench.openVolume(tab.page, VOLUME);
  const modes = tab.page.getByRole("group", { name: "Mode" });
  await modes.getByRole("button", { name: "advise" }).click();
  const dialog = tab.page.getByRole("dialog", { name: "Token for changes" });
  await tab.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await knobs(tab.page), tuned);
  await modes.getByRole("button", { name: "advise" }).click();
  await dialog.getByLabel("Token").fill(bench.TOKEN);
  await tab.page.keyboard.press("Enter");
  await tab.page
    .locator('.toast[data-state="good"]', { hasText: "advise" })
    .waitFor();
  await until(async () => (await knobs(tab.page)).length === 0);
  await tab.page.getByRole("button", { name: "Dismiss" }).click();
  // The page's own word on the mode comes with the next document.
  await modes
    .locator('[aria-pressed="true"]', { hasText: "advise" })
    .waitFor();
  await modes.getByRole("button", { name: "enforce" }).click();
  const sure = tab.page.getByRole("dialog", { name: /^Enforce/ });
  await sure.getByRole("button", { name: "Enforce" }).click();
  await tab.page
    .locator('.toast[data-state="good"]', { hasText: "enforce" })
    .waitFor();
  await until(async () => (await knobs(tab.page)).length > 0);
  tab.quiet();
  await tab.close();
});

test("a policy is refused with its place, then mended, saved and in force", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "policy");
  const area = tab.page.getByLabel("Policy text");
  const text = (key) =>
    `version: 1\nname: from-the-web\nwhy: A test.\nlimits:\n  ${key}: {max: 40MiB/s}\n`;
  await area.fill(text("destage_rat"));
  await tab.page.getByRole("button", { name: "Validate" }).click();
  await tab.page.getByRole("button", { name: /^Go to line 5/ }).waitFor();
  await area.fill(text("destage_rate"));
  await tab.page.getByText("✓ Valid").waitFor();
  await tab.page.getByLabel("File name, without .yaml").fill("from-the-web");
  await tab.page.getByRole("button", { name: "Save …" }).click();
  const sure = tab.page.getByRole("dialog");
  await sure.getByRole("button", { name: "Save" }).click();
  const token = tab.page.getByRole("dialog", { name: "Token for changes" });
  await token.getByLabel("Token").fill(bench.TOKEN);
  await tab.page.keyboard.press("Enter");
  await tab.page
    .locator('.toast[data-state="good"]', { hasText: "from-the-web" })
    .waitFor();
  await until(async () => (await live(tab.page)).policy === "from-the-web");
  tab.quiet();
  await tab.close();
});

test("an advice is applied and undone, and what somebody set meanwhile stays", async () => {
  const tab = await bench.tab(browser);
  const overrides = async () => (await live(tab.page)).wishes.map(({ knob }) => knob).sort();
  // In advise the knobs are as the test has set them, and there is an advice about this one.
  await bench.ask(tab.page, "mode", VOLUME, { mode: "advise" });
  await until(async () => (await knobs(tab.page)).length === 0);
  await bench.ask(tab.page, "set", VOLUME, { knob: "sequential_cutoff", value: "2MiB" });
  await until(async () => (await overrides()).length === 1);
  await bench.visit(tab.page, "advice");
  const card = tab.page.locator(".advice[data-weight]", { hasText: "EBB-209" });
  await card.getByRole("button", { name: "Apply …" }).click();
  const sure = tab.page.getByRole("dialog", { name: "Apply EBB-209" });
  await sure.getByRole("button", { name: "Apply", exact: true }).click();
  const token = tab.page.getByRole("dialog", { name: "Token for changes" });
  await token.getByLabel("Token").fill(bench.TOKEN);
  await tab.page.keyboard.press("Enter");
  const undo = tab.page.getByRole("button", { name: `Undo EBB-209 of ${VOLUME}` });
  await undo.waitFor({ timeout: TURN_MS });
  assert.deepEqual(await overrides(), ["sequential_cutoff", "writeback_percent"]);
  await bench.shot(tab.page, "lab-applied");
  await undo.click();
  const back = tab.page.getByRole("dialog", { name: "Undo EBB-209" });
  await back.getByRole("button", { name: "Undo", exact: true }).click();
  await until(async () => (await overrides()).length === 1);
  assert.deepEqual(await overrides(), ["sequential_cutoff"]);
  await undo.waitFor({ state: "detached", timeout: TURN_MS });
  await card.waitFor({ timeout: TURN_MS });
  await bench.ask(tab.page, "release", VOLUME, { knob: "sequential_cutoff" });
  await bench.ask(tab.page, "mode", VOLUME, { mode: "enforce" });
  await until(async () => (await knobs(tab.page)).length > 0);
  tab.quiet();
  await tab.close();
});

async function live(page) {
  const response = await page.request.get(
    `${bench.URL_}/api/v1/volumes/${VOLUME}`,
  );
  return response.json();
}

/** The knobs that ebbgate holds now. */
async function knobs(page) {
  return Object.entries((await live(page)).knobs)
    .filter(([, knob]) => knob.owner === "ebbgate")
    .map(([name]) => name)
    .sort();
}

async function until(holds) {
  const deadline = Date.now() + TURN_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, "it did not come about in time");
    await new Promise((wake) => setTimeout(wake, 500));
  }
}
