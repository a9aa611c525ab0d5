// SPDX-License-Identifier: GPL-2.0-only
// The first minutes of an administrator, with a real daemon and cache under a load of bursts and idle
// periods; tests/lab/test_web.py runs it.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const VOLUME = "bcache0";
// The load changes every few seconds; an emulated daemon is sometimes late.
const TURN_MS = 120_000;

const test = harness.testFile();

/** The value that the page shows for a label, such as `Load`. */
function figure(page, label) {
  const term = page.locator(".volume-status dt", { hasText: label }).first();
  return term.locator("xpath=following-sibling::dd");
}

/** Waits until a value has matched each pattern, in this order. */
async function becomes(page, label, ...wanted) {
  const value = figure(page, label);
  for (const pattern of wanted)
    await value.filter({ hasText: pattern }).waitFor({ timeout: TURN_MS });
}

test("write-back is held back in a burst and runs when the volume is idle", async (page) => {
  await harness.openVolume(page, VOLUME);
  await becomes(page, "Load", /burst/, /idle/, /burst/);
  await becomes(page, "Write-back", /held back/, /paced|resting|open/, /held back/);
  await harness.shot(page, "lab-volume");
});

test("a mark opens the explanation of its decision", async (page) => {
  await harness.openVolume(page, VOLUME);
  const mark = page.locator(".mark:is(button)").last();
  await mark.waitFor({ timeout: TURN_MS });
  await mark.press("Enter");
  await page.getByRole("dialog").waitFor();
  // A mark of several decisions opens a list to choose from.
  const which = page.getByRole("dialog").getByRole("button", { name: "Why" });
  if ((await which.count()) > 0) await which.first().click();
  const dialog = page.getByRole("dialog").last();
  await dialog.getByText("Proposals of all strategies").waitFor();
  assert.match(await dialog.textContent(), /idle_destage/);
  assert.ok((await dialog.getByText("Measured").count()) > 0);
  await harness.shot(page, "lab-explanation");
});

test("a mode change requires the token and restores the knobs", async (page) => {
  const tuned = await tunedKnobs(page);
  assert.ok(tuned.length > 0, "nothing is tuned");
  await harness.openVolume(page, VOLUME);
  const modes = page.getByRole("group", { name: "Mode" });
  await modes.getByRole("button", { name: "advise" }).click();
  const dialog = page.getByRole("dialog", { name: "Token for changes" });
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await tunedKnobs(page), tuned);
  await modes.getByRole("button", { name: "advise" }).click();
  await dialog.getByLabel("Token").fill(harness.TOKEN);
  await page.keyboard.press("Enter");
  await page.locator('.toast[data-state="good"]', { hasText: "advise" }).waitFor();
  await until(async () => (await tunedKnobs(page)).length === 0);
  await page.getByRole("button", { name: "Dismiss" }).click();
  // The page shows the mode with the next data.
  await modes.locator('[aria-pressed="true"]', { hasText: "advise" }).waitFor();
  await modes.getByRole("button", { name: "enforce" }).click();
  const sure = page.getByRole("dialog", { name: /^Enforce/ });
  await sure.getByRole("button", { name: "Enforce" }).click();
  await page.locator('.toast[data-state="good"]', { hasText: "enforce" }).waitFor();
  await until(async () => (await tunedKnobs(page)).length > 0);
});

test("a policy error is shown at its line; the corrected policy is saved and used", async (page) => {
  await harness.visit(page, "policy");
  const area = page.getByLabel("Policy text");
  const text = (key) =>
    `version: 1\nname: from-the-web\nwhy: A test.\nlimits:\n  ${key}: {max: 40MiB/s}\n`;
  await area.fill(text("destage_rat"));
  await page.getByRole("button", { name: "Validate" }).click();
  await page.getByRole("button", { name: /^Go to line 5/ }).waitFor();
  await area.fill(text("destage_rate"));
  await page.getByText("✓ Valid").waitFor();
  await page.getByLabel("File name, without .yaml").fill("from-the-web");
  await page.getByRole("button", { name: "Save …" }).click();
  const sure = page.getByRole("dialog");
  await sure.getByRole("button", { name: "Save" }).click();
  const token = page.getByRole("dialog", { name: "Token for changes" });
  await token.getByLabel("Token").fill(harness.TOKEN);
  await page.keyboard.press("Enter");
  await page.locator('.toast[data-state="good"]', { hasText: "from-the-web" }).waitFor();
  await until(async () => (await live(page)).policy === "from-the-web");
});

test("an advice is applied and undone, and another override stays", async (page) => {
  const overrides = async () => (await live(page)).overrides.map(({ knob }) => knob).sort();
  // In mode advise the knobs have the values of the test, one of which causes an advice.
  await harness.requestChange(page, "mode", VOLUME, { mode: "advise" });
  await until(async () => (await tunedKnobs(page)).length === 0);
  await harness.requestChange(page, "set", VOLUME, {
    knob: "sequential_cutoff",
    value: "2MiB",
  });
  await until(async () => (await overrides()).length === 1);
  await harness.visit(page, "advice");
  const card = page.locator(".advice[data-weight]", { hasText: "EBB-209" });
  await card.getByRole("button", { name: "Apply …" }).click();
  const sure = page.getByRole("dialog", { name: "Apply EBB-209" });
  await sure.getByRole("button", { name: "Apply", exact: true }).click();
  const token = page.getByRole("dialog", { name: "Token for changes" });
  await token.getByLabel("Token").fill(harness.TOKEN);
  await page.keyboard.press("Enter");
  const undo = page.getByRole("button", { name: `Undo EBB-209 of ${VOLUME}` });
  await undo.waitFor({ timeout: TURN_MS });
  assert.deepEqual(await overrides(), ["sequential_cutoff", "writeback_percent"]);
  await harness.shot(page, "lab-applied");
  await undo.click();
  const back = page.getByRole("dialog", { name: "Undo EBB-209" });
  await back.getByRole("button", { name: "Undo", exact: true }).click();
  await until(async () => (await overrides()).length === 1);
  assert.deepEqual(await overrides(), ["sequential_cutoff"]);
  await undo.waitFor({ state: "detached", timeout: TURN_MS });
  await card.waitFor({ timeout: TURN_MS });
  await harness.requestChange(page, "release", VOLUME, { knob: "sequential_cutoff" });
  await harness.requestChange(page, "mode", VOLUME, { mode: "enforce" });
  await until(async () => (await tunedKnobs(page)).length > 0);
});

async function live(page) {
  const response = await page.request.get(`${harness.URL_}/api/v1/volumes/${VOLUME}`);
  return response.json();
}

/** The knobs that ebbgate has changed. */
async function tunedKnobs(page) {
  return Object.entries((await live(page)).knobs)
    .filter(([, knob]) => knob.owner === "ebbgate")
    .map(([name]) => name)
    .sort();
}

async function until(holds) {
  const deadline = Date.now() + TURN_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, "timed out");
    await new Promise((wake) => setTimeout(wake, 500));
  }
}
