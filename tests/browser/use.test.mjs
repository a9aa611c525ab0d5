// SPDX-License-Identifier: GPL-2.0-only
// What people do with it: look why, filter, change a mode with and without the token, edit a policy.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as bench from "./bench.mjs";

const UNAUTHORIZED = /status of 401/;

let browser;
before(async () => {
  browser = await bench.browse();
});
after(() => browser.close());

test("what the stream tells at its begin is asked for by no other request", async () => {
  const tab = await bench.tab(browser);
  const asked = [];
  tab.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await bench.visit(tab.page, "overview");
  await tab.page.locator('.pulse[data-state="live"]').waitFor();
  const api = asked.filter((path) => path.startsWith("/api/"));
  assert.deepEqual(api.sort(), ["/api/v1/events", "/api/v1/intents"]);
  tab.quiet();
  await tab.close();
});

test("a decision opens its explanation, by mouse and by keyboard, and gives the focus back", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "decisions");
  const why = tab.page.locator(".decision .button", { hasText: "Why" }).first();
  for (const press of [() => why.click(), () => why.press("Enter")]) {
    await press();
    const dialog = tab.page.getByRole("dialog");
    await dialog.getByText("Proposals of all strategies").waitFor();
    assert.ok((await dialog.locator(".proposal").count()) > 0);
    assert.ok((await dialog.getByText("Measured").count()) > 0);
    await tab.page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.ok(await why.evaluate((element) => element === document.activeElement));
  }
  tab.quiet();
  await tab.close();
});

test("marks on the timeline are one stop of the tab key, and arrow keys go on", async () => {
  const tab = await bench.tab(browser);
  await bench.openVolume(tab.page, await bench.someVolume(tab.page));
  await tab.page.getByRole("button", { name: "24h" }).click();
  const marks = tab.page.locator(".mark:is(button)");
  await marks.first().waitFor();
  assert.equal(await tab.page.locator('.mark:is(button)[tabindex="0"]').count(), 1);
  await tab.page.locator('.mark:is(button)[tabindex="0"]').focus();
  const before_ = await marks.evaluateAll((all) => all.indexOf(document.activeElement));
  if (before_ > 0) {
    await tab.page.keyboard.press("ArrowLeft");
    assert.equal(
      await marks.evaluateAll((all) => all.indexOf(document.activeElement)),
      before_ - 1,
    );
  }
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("dialog").waitFor();
  tab.quiet();
  await tab.close();
});

test("a filter leaves only what it asks for, and is in the address", async () => {
  const tab = await bench.tab(browser);
  const volume = await bench.someVolume(tab.page);
  await bench.visit(tab.page, "decisions");
  await tab.page
    .locator(`select[name="volume"] option[value="${volume}"]`)
    .waitFor({ state: "attached" });
  await tab.page.getByLabel("Volume").selectOption(volume);
  await tab.page.waitForFunction((name) => location.hash.includes(`volume=${name}`), volume);
  const only = async () => {
    await tab.page.waitForFunction((name) => {
      const links = [...document.querySelectorAll(".decision .of")];
      return links.length > 0 && links.every((link) => link.getAttribute("href").endsWith(name));
    }, encodeURIComponent(volume));
  };
  await only();
  await tab.page.reload();
  await only();
  await tab.page.getByLabel("Result").selectOption("failed");
  await tab.page.getByText("No matching decisions").waitFor();
  await tab.page.getByRole("button", { name: "Clear filters" }).click();
  await tab.page.waitForSelector(".decision");
  tab.quiet();
  await tab.close();
});

test("what another cutoff would bypass is asked by pointer and by keyboard", async () => {
  const tab = await bench.tab(browser);
  await bench.openVolume(tab.page, await bench.someVolume(tab.page));
  const slider = tab.page.getByRole("slider", {
    name: "Sequential cutoff to try",
  });
  await slider.focus();
  const said = () => slider.getAttribute("aria-valuetext");
  await tab.page.keyboard.press("Home");
  const lowest = await said();
  assert.match(lowest, /^At a cutoff of .* 100% of bytes bypass the cache\.$/);
  await tab.page.keyboard.press("End");
  assert.notEqual(await said(), lowest);
  const box = await slider.boundingBox();
  await tab.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  assert.match(await said(), /of bytes bypass the cache\.$/);
  tab.quiet();
  await tab.close();
});

test("a change asks for the token; a wrong one is refused, the right one taken", async () => {
  const tab = await bench.tab(browser);
  const volume = await bench.someVolume(tab.page);
  await bench.openVolume(tab.page, volume);
  const modes = tab.page.getByRole("group", { name: "Mode" });
  const before_ = await modes.locator('[aria-pressed="true"]').textContent();
  const other = before_ === "observe" ? "advise" : "observe";
  await modes.getByRole("button", { name: other }).click();
  const dialog = tab.page.getByRole("dialog", { name: "Token for changes" });
  await dialog.getByLabel("Token").fill("a wrong token of some length");
  await tab.page.keyboard.press("Enter");
  await dialog.getByText("The server rejected this token.").waitFor();
  assert.equal(await tab.page.locator(".toast").count(), 0);
  await dialog.getByLabel("Token").fill(bench.TOKEN);
  await tab.page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await tab.page.locator('.toast[data-state="good"]', { hasText: other }).waitFor();
  // From now on nobody asks for it.
  await tab.page.getByRole("button", { name: "Dismiss" }).click();
  await modes.getByRole("button", { name: other }).click();
  await tab.page.locator('.toast[data-state="good"]', { hasText: other }).waitFor();
  assert.equal(await dialog.count(), 0);
  await bench.ask(tab.page, "mode", volume, { mode: before_ });
  tab.quiet(UNAUTHORIZED);
  await tab.close();
});

async function allow(tab) {
  await tab.page.getByRole("button", { name: "Changes: locked" }).click();
  const dialog = tab.page.getByRole("dialog", { name: "Token for changes" });
  await dialog.getByLabel("Token").fill(bench.TOKEN);
  await tab.page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
}

async function lastAsked(page) {
  const response = await page.request.get(`${bench.URL_}/api/v1/intents?limit=1`);
  return (await response.json()).intents[0];
}

/** All requests after one, the oldest first. */
async function askedSince(page, number) {
  const response = await page.request.get(`${bench.URL_}/api/v1/intents?limit=20`);
  const { intents } = await response.json();
  return intents.filter(({ id }) => id > number).reverse();
}

test("a hold is for a time or until it is released", async () => {
  const tab = await bench.tab(browser);
  const volume = await bench.someVolume(tab.page);
  await bench.openVolume(tab.page, volume);
  await allow(tab);
  for (const [choice, title, args] of [
    ["1 h", "hold for 1 h", { on: true, for_ns: 3600e9 }],
    ["until released", "hold", { on: true }],
  ]) {
    await tab.page.getByRole("button", { name: "Hold …" }).click();
    const dialog = tab.page.getByRole("dialog", { name: /^Hold / });
    await dialog.getByLabel("Duration").selectOption(choice);
    await dialog.getByRole("button", { name: "Hold", exact: true }).click();
    const toast = tab.page.locator('.toast[data-state="good"]', { hasText: title });
    await toast.waitFor();
    await toast.getByRole("button", { name: "Dismiss" }).click();
    const asked = await lastAsked(tab.page);
    assert.deepEqual([asked.kind, asked.volume, asked.args], ["hold", volume, args]);
  }
  await bench.ask(tab.page, "hold", volume, { on: false });
  tab.quiet();
  await tab.close();
});

test("a release of all overrides asks first and lists them; one of them ends alone", async () => {
  const tab = await bench.tab(browser);
  await bench.openVolume(tab.page, "bcache0");
  await allow(tab);
  await tab.page.getByRole("button", { name: "Release all …" }).click();
  const dialog = tab.page.getByRole("dialog", { name: "Release all overrides of bcache0" });
  const listed = await dialog.locator("li").allTextContents();
  const knobs = ["congested_read_threshold_us", "congested_write_threshold_us"];
  for (const knob of knobs) assert.ok(listed.some((line) => line.startsWith(knob)), knob);
  const before_ = (await lastAsked(tab.page)).id;
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await lastAsked(tab.page)).id, before_);
  await tab.page.getByRole("button", { name: `Release ${knobs[0]}` }).click();
  await tab.page.locator('.toast[data-state="good"]', { hasText: knobs[0] }).waitFor();
  assert.deepEqual((await lastAsked(tab.page)).args, { knob: knobs[0] });
  await tab.page.getByRole("button", { name: "Release all …" }).click();
  await dialog.getByRole("button", { name: "Release all" }).click();
  await tab.page.locator('.toast[data-state="good"]', { hasText: "release all" }).waitFor();
  const { kind, args } = await lastAsked(tab.page);
  assert.deepEqual([kind, args], ["release", {}]);
  tab.quiet();
  await tab.close();
});

test("only knobs that can be set are offered, for a time or until they are released", async () => {
  const tab = await bench.tab(browser);
  const response = await tab.page.request.get(`${bench.URL_}/api/v1/volumes`);
  const { volumes } = await response.json();
  const every = volumes.flatMap(({ knobs }) => Object.values(knobs));
  assert.ok(every.some(({ settable }) => !settable));
  for (const { volume, knobs } of volumes.slice(0, 3)) {
    const settable = Object.keys(knobs).filter((name) => knobs[name].settable);
    await bench.openVolume(tab.page, volume);
    await tab.page.getByRole("button", { name: "Change a setting …" }).click();
    const dialog = tab.page.getByRole("dialog", { name: /^Change a setting of / });
    assert.deepEqual(await dialog.locator("option").allTextContents(), settable.sort());
    await tab.page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  const [{ volume }] = volumes;
  await bench.openVolume(tab.page, volume);
  await allow(tab);
  await tab.page.getByRole("button", { name: "Change a setting …" }).click();
  const dialog = tab.page.getByRole("dialog", { name: /^Change a setting of / });
  await dialog.getByLabel("Setting").selectOption("sequential_cutoff");
  await dialog.getByLabel("Value").fill("1MiB");
  await dialog.getByLabel("Duration").fill("10min");
  await dialog.getByRole("button", { name: "Set" }).click();
  await tab.page.locator('.toast[data-state="good"]', { hasText: "sequential_cutoff" }).waitFor();
  const { args } = await lastAsked(tab.page);
  assert.deepEqual(args, { knob: "sequential_cutoff", value: "1MiB", for_ns: 600e9 });
  await bench.ask(tab.page, "release", volume, { knob: "sequential_cutoff" });
  tab.quiet();
  await tab.close();
});

test("advice says how much it matters, and its command is one line to copy", async () => {
  const tab = await bench.tab(browser, { width: 360, height: 760 });
  await bench.visit(tab.page, "advice");
  const words = await tab.page.locator(".advice[data-weight] .badge").allTextContents();
  assert.deepEqual(new Set(words), new Set(["Problem", "Recommended", "Info"]));
  const order = ["Problem", "Recommended", "Info"].map((word) => words.indexOf(word));
  assert.deepEqual(order, order.toSorted((a, b) => a - b));
  const lines = await tab.page.locator(".command code").allTextContents();
  assert.ok(lines.some((line) => line.includes(" | sudo tee /sys/")));
  assert.ok(lines.some((line) => line.startsWith('ACTION=="add|change"')));
  for (const code of await tab.page.locator(".command code").all()) {
    // Lines of it may be scrolled, but none is broken.
    assert.equal(await code.evaluate((element) => getComputedStyle(element).whiteSpace), "pre");
  }
  tab.quiet();
  await tab.close();
});

test("an applied advice is undone by releasing its own knobs, and nothing else is", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "advice");
  const advised = tab.page.locator(".advice[data-weight]");
  assert.ok((await advised.count()) > 3);
  assert.equal(await advised.getByRole("button", { name: /Undo/ }).count(), 0);
  assert.ok((await advised.getByRole("button", { name: /Apply/ }).count()) > 0);
  await allow(tab);
  const before_ = (await lastAsked(tab.page)).id;
  await tab.page.getByRole("button", { name: "Undo EBB-205 of bcache0" }).click();
  const dialog = tab.page.getByRole("dialog", { name: "Undo EBB-205" });
  await dialog.getByText("Other settings do not change.").waitFor();
  await dialog.getByRole("button", { name: "Undo", exact: true }).click();
  const good = tab.page.locator('.toast[data-state="good"]', { hasText: "release" });
  await good.nth(1).waitFor();
  const asked = (await askedSince(tab.page, before_)).map(({ kind, volume, args }) => [
    kind,
    volume,
    args,
  ]);
  assert.deepEqual(asked, [
    ["release", "bcache0", { knob: "congested_read_threshold_us" }],
    ["release", "bcache0", { knob: "congested_write_threshold_us" }],
  ]);
  tab.quiet();
  await tab.close();
});

test("a move of the gate is not undone; tuning can be stopped", async () => {
  const tab = await bench.tab(browser);
  await tab.page.goto(`${bench.URL_}/#/decisions?volume=bcache0`);
  await tab.page.waitForSelector(".decision .writes");
  assert.equal(await tab.page.getByRole("button", { name: /Undo/ }).count(), 0);
  await allow(tab);
  await tab.page.getByRole("button", { name: "Stop tuning bcache0" }).first().click();
  const dialog = tab.page.getByRole("dialog", { name: "Stop tuning bcache0" });
  await bench.shot(tab.page, "stop-tuning");
  await dialog.getByRole("button", { name: "Stop tuning (advise)" }).click();
  await tab.page.locator('.toast[data-state="good"]', { hasText: "advise" }).waitFor();
  const asked = await lastAsked(tab.page);
  assert.deepEqual([asked.kind, asked.volume, asked.args], ["mode", "bcache0", { mode: "advise" }]);
  await bench.ask(tab.page, "mode", "bcache0", { mode: "enforce" });
  // A volume that is not tuned has nothing to stop.
  await tab.page.goto(`${bench.URL_}/#/decisions?volume=bcache1`);
  await tab.page.waitForSelector(".decision");
  assert.equal(await tab.page.getByRole("button", { name: /^Stop tuning/ }).count(), 0);
  tab.quiet();
  await tab.close();
});

const closed = { skip: bench.CLOSED_URL === undefined };
test("a server that shows nothing without the token says so, and all with it", closed, async () => {
  const tab = await bench.tab(browser);
  await tab.page.goto(`${bench.CLOSED_URL}/`);
  await tab.page.getByText("Token required.").waitFor();
  assert.equal(await tab.page.locator(".volume-card, .volume-row").count(), 0);
  await bench.shot(tab.page, "token-needed");
  await tab.page.getByRole("button", { name: "Changes: locked" }).click();
  const dialog = tab.page.getByRole("dialog", { name: "Token for changes" });
  await dialog.getByLabel("Token").fill(bench.TOKEN);
  await tab.page.keyboard.press("Enter");
  await tab.page
    .getByText("Token required.")
    .waitFor({ state: "detached" });
  await tab.page.locator(".volume-card, .volume-row").first().waitFor();
  await tab.page.locator('.pulse[data-state="live"]').waitFor();
  tab.quiet(UNAUTHORIZED);
  await tab.close();
});

test("the token dies with the tab", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "overview");
  assert.equal(await tab.page.getByRole("button", { name: "Changes: locked" }).count(), 1);
  const kept = await tab.page.evaluate(() => [Object.keys(localStorage), document.cookie]);
  assert.deepEqual(kept, [[], ""]);
  tab.quiet();
  await tab.close();
});

test("a policy with an error shows it at its line; the right one is accepted", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "policy");
  const area = tab.page.getByLabel("Policy text");
  const name = "browser-test";
  const text = (key) => `version: 1\nname: ${name}\nobjectives: {${key}: 30ms}\n`;
  await area.fill(text("read_latncy_p99"));
  await tab.page.getByRole("button", { name: "Validate" }).click();
  await tab.page.getByRole("button", { name: /^Go to line 3/ }).waitFor();
  assert.match(await tab.page.locator(".problems").textContent(), /read_latency_p99/);
  assert.match(await tab.page.locator(".line-numbers .wrong").textContent(), /3/);
  await bench.shot(tab.page, "policy-error");
  await area.fill(text("read_latency_p99"));
  await tab.page.getByText("✓ Valid").waitFor();
  assert.equal(await tab.page.locator(".line-numbers .wrong").count(), 0);
  await tab.page.getByLabel("File name, without .yaml").fill(name);
  await tab.page.getByRole("button", { name: "Save …" }).click();
  await tab.page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await tab.page
    .getByRole("dialog", { name: "Token for changes" })
    .getByLabel("Token")
    .fill(bench.TOKEN);
  await tab.page.keyboard.press("Enter");
  await tab.page.locator('.toast[data-state="good"]', { hasText: name }).waitFor();
  tab.quiet();
  await tab.close();
});

test("a dry run shows what a policy would have done otherwise", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "policy");
  await tab.page.getByLabel("Policy text").fill("version: 1\nname: none\nstrategies: []\n");
  await tab.page.getByText("Dry run: what this policy would have done differently").click();
  await tab.page.getByLabel("Over the last").selectOption("1");
  await tab.page.getByRole("button", { name: "Run", exact: true }).click();
  await tab.page.locator(".diff li .added").first().waitFor();
  await bench.shot(tab.page, "policy-dry-run");
  tab.quiet();
  await tab.close();
});

test("the editor completes keys from the schema by keyboard", async () => {
  const tab = await bench.tab(browser);
  const schema = tab.page.waitForResponse(/policy-schema/);
  await bench.visit(tab.page, "policy");
  await (await schema).finished();
  const area = tab.page.getByLabel("Policy text");
  await area.fill("version: 1\n");
  await area.press("Control+End");
  await area.pressSequentially("obj");
  await tab.page.getByRole("option", { name: /^objectives/ }).waitFor();
  await area.press("Enter");
  assert.equal(await area.inputValue(), "version: 1\nobjectives: ");
  await area.press("Control+Space");
  await area.press("Escape");
  await area.press("Tab");
  assert.ok(await area.evaluate((element) => element !== document.activeElement));
  tab.quiet();
  await tab.close();
});

test("by keyboard alone: skip link, pages, theme", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "overview");
  await tab.page.keyboard.press("Tab");
  assert.equal(
    await tab.page.evaluate(() => document.activeElement.textContent),
    "Skip to content",
  );
  await tab.page.keyboard.press("Enter");
  assert.equal(await tab.page.evaluate(() => document.activeElement.id), "main");
  await tab.page.getByRole("link", { name: "Doctor" }).focus();
  await tab.page.keyboard.press("Enter");
  await tab.page.waitForSelector(bench.PAGES.doctor);
  assert.equal(await tab.page.locator('nav [aria-current="page"]').textContent(), "Doctor");
  await tab.page.getByRole("button", { name: /^Theme/ }).press("Enter");
  assert.equal(await tab.page.evaluate(() => document.documentElement.dataset.theme), "dark");
  tab.quiet();
  await tab.close();
});

test("a definition is in reach of the keyboard", async () => {
  const tab = await bench.tab(browser);
  await bench.openVolume(tab.page, await bench.someVolume(tab.page));
  await tab.page.getByRole("button", { name: "What Hit ratio means" }).press("Enter");
  await tab.page.getByText("Share of read requests").waitFor();
  await tab.page.keyboard.press("Escape");
  await tab.page.getByText("Share of read requests").waitFor({ state: "hidden" });
  tab.quiet();
  await tab.close();
});

test("what cannot be read at first is there a moment later", async () => {
  const tab = await bench.tab(browser);
  const error = { code: "unavailable", message: "the history is busy", hint: null, place: null };
  for (const path of ["decisions", "advice", "policies", "doctor"]) {
    await tab.page.route(
      new RegExp(`/api/v1/${path}(\\?|$)`),
      (route) => route.fulfill({ status: 503, json: { error } }),
      { times: 1 },
    );
  }
  for (const name of ["decisions", "advice", "policy", "doctor"]) {
    await tab.page.goto(`${bench.URL_}/#/${name}`);
    await tab.page.getByText("the history is busy").waitFor();
    await tab.page.waitForSelector(bench.PAGES[name]);
  }
  tab.quiet(/status of 503/);
  await tab.close();
});

test("a server that goes away is said so, and the page recovers by itself", async () => {
  const tab = await bench.tab(browser);
  await bench.visit(tab.page, "overview");
  await tab.page.context().setOffline(true);
  await tab.page.getByText("Connection lost.").waitFor();
  await bench.shot(tab.page, "server-gone");
  await tab.page.context().setOffline(false);
  await tab.page.getByText("Connection lost.").waitFor({ state: "detached" });
  await tab.page.locator('.pulse[data-state="live"]').waitFor();
  tab.quiet(/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/);
  await tab.close();
});
