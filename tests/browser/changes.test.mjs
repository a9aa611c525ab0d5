// SPDX-License-Identifier: GPL-2.0-only
// Changes of a volume: token, mode, hold, release and settings.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const UNAUTHORIZED = /status of 401/;
const test = harness.testFile();

test(
  "a change asks for the token until it is right, and then no more",
  async (page) => {
    const volume = await harness.someVolume(page);
    await harness.openVolume(page, volume);
    const modes = page.getByRole("group", { name: "Mode" });
    const previous = await modes.locator('[aria-pressed="true"]').textContent();
    const other = previous === "observe" ? "advise" : "observe";
    await modes.getByRole("button", { name: other }).click();
    const dialog = page.getByRole("dialog", { name: "Token for changes" });
    await dialog.getByLabel("Token").fill("a wrong token of some length");
    await page.keyboard.press("Enter");
    await dialog.getByText("The server rejected this token.").waitFor();
    assert.equal(await page.locator(".toast").count(), 0);
    await dialog.getByLabel("Token").fill(harness.TOKEN);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await page.locator('.toast[data-state="good"]', { hasText: other }).waitFor();
    // The token is not asked for again.
    await page.getByRole("button", { name: "Dismiss" }).click();
    await modes.getByRole("button", { name: other }).click();
    await page.locator('.toast[data-state="good"]', { hasText: other }).waitFor();
    assert.equal(await dialog.count(), 0);
    await harness.requestChange(page, "mode", volume, { mode: previous });
  },
  { expected: UNAUTHORIZED },
);

test("a token that is accepted after the dialog was closed is not kept", async (page) => {
  await harness.visit(page, "overview");
  const answer = await harness.holdBack(page, /api\/v1\/token/, () => true);
  await page.getByRole("button", { name: "Changes: locked" }).click();
  const dialog = page.getByRole("dialog", { name: "Token for changes" });
  await dialog.getByLabel("Token").fill(harness.TOKEN);
  const sent = page.waitForRequest(/api\/v1\/token/);
  await page.keyboard.press("Enter");
  await sent;
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await answer.release();
  await page.getByRole("button", { name: "Changes: locked" }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("a dialog stays where text is selected beyond its edge", async (page) => {
  await harness.visit(page, "overview");
  await page.getByRole("button", { name: "Changes: locked" }).click();
  const dialog = page.getByRole("dialog", { name: "Token for changes" });
  const field = dialog.getByLabel("Token");
  await field.fill("typed");
  const box = await field.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(4, 4, { steps: 4 });
  await page.mouse.up();
  assert.equal(await field.inputValue(), "typed");
  await page.mouse.click(4, 4);
  await dialog.waitFor({ state: "detached" });
});

test("a double click opens a dialog that stays, and sends one request", async (page) => {
  await harness.openVolume(page, "bcache0");
  await page.getByRole("button", { name: "Changes: locked" }).dblclick();
  const dialog = page.getByRole("dialog", { name: "Token for changes" });
  await dialog.getByLabel("Token").fill(harness.TOKEN);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  const modes = page.getByRole("group", { name: "Mode" });
  const previous = await modes.locator('[aria-pressed="true"]').textContent();
  const other = previous === "observe" ? "advise" : "observe";
  const { id } = await harness.lastIntent(page);
  await modes.getByRole("button", { name: other }).dblclick();
  await page.locator('.toast[data-state="good"]').waitFor();
  await page.waitForTimeout(500);
  assert.equal((await harness.intentsSince(page, id)).length, 1);
  await harness.requestChange(page, "mode", "bcache0", { mode: previous });
});

test("a hold lasts for a time or until it is released", async (page) => {
  const volume = await harness.someVolume(page);
  await harness.openVolume(page, volume);
  await harness.unlock(page);
  for (const [choice, title, args] of [
    ["1 h", "hold for 1 h", { on: true, for_ns: 3600e9 }],
    ["until released", "hold", { on: true }],
  ]) {
    await page.getByRole("button", { name: "Hold …" }).click();
    const dialog = page.getByRole("dialog", { name: /^Hold / });
    await dialog.getByLabel("Duration").selectOption(choice);
    await dialog.getByRole("button", { name: "Hold", exact: true }).click();
    const toast = page.locator('.toast[data-state="good"]', { hasText: title });
    await toast.waitFor();
    await toast.getByRole("button", { name: "Dismiss" }).click();
    const intent = await harness.lastIntent(page);
    assert.deepEqual([intent.kind, intent.volume, intent.args], ["hold", volume, args]);
  }
  await harness.requestChange(page, "hold", volume, { on: false });
});

test("a time of day is one of the server's clock, also where the browser's is wrong", async (page) => {
  await page.clock.install({ time: Date.now() - 50 * 3600_000 });
  await harness.openVolume(page, "bcache0");
  await page.getByRole("button", { name: "24h" }).click();
  await page.locator(".lane-ends", { hasText: /\d\d-\d\d/ }).waitFor();
  await harness.unlock(page);
  await page.getByRole("button", { name: "Drain …" }).click();
  const dialog = page.getByRole("dialog", { name: /^Drain / });
  const due = new Date(Date.now() + 3 * 3600_000);
  await dialog.getByLabel("Deadline").fill(due.toTimeString().slice(0, 5));
  const sent = page.waitForRequest((request) => request.method() === "POST");
  await dialog.getByRole("button", { name: "Drain", exact: true }).click();
  const { args } = (await sent).postDataJSON();
  assert.ok(Math.abs(args.for_ns - 3 * 3600e9) < 120e9, `for ${args.for_ns / 3600e9} h`);
  await page.locator('.toast[data-state="good"]', { hasText: "drain" }).waitFor();
});

test("a release of all overrides asks first and lists them; a single one can be released", async (page) => {
  await harness.openVolume(page, "bcache0");
  await harness.unlock(page);
  await page.getByRole("button", { name: "Release all …" }).click();
  const dialog = page.getByRole("dialog", { name: "Release all overrides of bcache0" });
  const listed = await dialog.locator("li").allTextContents();
  const knobs = ["congested_read_threshold_us", "congested_write_threshold_us"];
  for (const knob of knobs)
    assert.ok(
      listed.some((line) => line.startsWith(knob)),
      knob,
    );
  const previous = (await harness.lastIntent(page)).id;
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await harness.lastIntent(page)).id, previous);
  await page.getByRole("button", { name: `Release ${knobs[0]}` }).click();
  await page.locator('.toast[data-state="good"]', { hasText: knobs[0] }).waitFor();
  assert.deepEqual((await harness.lastIntent(page)).args, { knob: knobs[0] });
  await page.getByRole("button", { name: "Release all …" }).click();
  await dialog.getByRole("button", { name: "Release all" }).click();
  await page.locator('.toast[data-state="good"]', { hasText: "release all" }).waitFor();
  const { kind, args } = await harness.lastIntent(page);
  assert.deepEqual([kind, args], ["release", {}]);
});

test(
  "a hold ends alone, a drain only with a release of everything",
  async (page) => {
    const override = { knob: null, value: null, who: "admin", left_ns: null };
    // Without the stream the page polls, so that a route can add overrides.
    await page.route(/api\/v1\/events/, (route) => route.abort());
    await page.route(/api\/v1\/volumes$/, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const each of json.volumes)
        each.overrides = ["hold", "drain"].map((kind) => ({ ...override, kind }));
      await route.fulfill({ response, json });
    });
    await harness.openVolume(page, "bcache0");
    await harness.unlock(page);
    await page.locator(".overrides").getByRole("button", { name: "Release all …" }).click();
    const dialog = page.getByRole("dialog", { name: "Release all overrides of bcache0" });
    assert.equal(await dialog.locator("li").count(), 2);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.locator(".overrides").getByRole("button", { name: "End hold" }).click();
    await page.locator('.toast[data-state="good"]', { hasText: "end hold" }).waitFor();
    const { kind, args } = await harness.lastIntent(page);
    assert.deepEqual([kind, args], ["hold", { on: false }]);
  },
  { expected: /ERR_FAILED/ },
);

test("only settings that can be changed are offered", async (page) => {
  const response = await page.request.get(`${harness.URL_}/api/v1/volumes`);
  const { volumes } = await response.json();
  const every = volumes.flatMap(({ knobs }) => Object.values(knobs));
  assert.ok(every.some(({ settable }) => !settable));
  for (const { volume, knobs } of volumes.slice(0, 3)) {
    const settable = Object.keys(knobs).filter((name) => knobs[name].settable);
    await harness.openVolume(page, volume);
    await page.getByRole("button", { name: "Change a setting …" }).click();
    const dialog = page.getByRole("dialog", { name: /^Change a setting of / });
    assert.deepEqual(await dialog.locator("option").allTextContents(), settable.sort());
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  const [{ volume }] = volumes;
  await harness.openVolume(page, volume);
  await harness.unlock(page);
  await page.getByRole("button", { name: "Change a setting …" }).click();
  const dialog = page.getByRole("dialog", { name: /^Change a setting of / });
  await dialog.getByLabel("Setting").selectOption("sequential_cutoff");
  await dialog.getByLabel("Value").fill("1MiB");
  await dialog.getByLabel("Duration").fill("10min");
  await dialog.getByRole("button", { name: "Set" }).click();
  await page.locator('.toast[data-state="good"]', { hasText: "sequential_cutoff" }).waitFor();
  const { args } = await harness.lastIntent(page);
  assert.deepEqual(args, { knob: "sequential_cutoff", value: "1MiB", for_ns: 600e9 });
  await harness.requestChange(page, "release", volume, { knob: "sequential_cutoff" });
});

test("the token is not stored beyond the tab", async (page) => {
  await harness.visit(page, "overview");
  assert.equal(await page.getByRole("button", { name: "Changes: locked" }).count(), 1);
  const kept = await page.evaluate(() => [Object.keys(localStorage), document.cookie]);
  assert.deepEqual(kept, [[], ""]);
});
