// SPDX-License-Identifier: GPL-2.0-only
// Decisions: explanations, marks on the timeline, filters, and the end of tuning.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();

test("a decision opens its explanation by mouse and keyboard and returns the focus", async (page) => {
  await harness.visit(page, "decisions");
  const why = page.locator(".decision .button", { hasText: "Why" }).first();
  for (const press of [() => why.click(), () => why.press("Enter")]) {
    await press();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Proposals of all strategies").waitFor();
    assert.ok((await dialog.locator(".proposal").count()) > 0);
    assert.ok((await dialog.getByText("Measured").count()) > 0);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.ok(await why.evaluate((element) => element === document.activeElement));
  }
});

test("arrow keys move between the marks of the timeline", async (page) => {
  await harness.openVolume(page, await harness.someVolume(page));
  await page.getByRole("button", { name: "24h" }).click();
  const marks = page.locator(".mark:is(button)");
  await marks.first().waitFor();
  assert.equal(await page.locator('.mark:is(button)[tabindex="0"]').count(), 1);
  await page.locator('.mark:is(button)[tabindex="0"]').focus();
  const previous = await marks.evaluateAll((all) => all.indexOf(document.activeElement));
  if (previous > 0) {
    await page.keyboard.press("ArrowLeft");
    assert.equal(
      await marks.evaluateAll((all) => all.indexOf(document.activeElement)),
      previous - 1,
    );
  }
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
});

test("a filter limits the decisions and is kept in the address", async (page) => {
  const volume = await harness.someVolume(page);
  await harness.visit(page, "decisions");
  await page
    .locator(`select[name="volume"] option[value="${volume}"]`)
    .waitFor({ state: "attached" });
  await page.getByLabel("Volume").selectOption(volume);
  await page.waitForFunction((name) => location.hash.includes(`volume=${name}`), volume);
  const only = async () => {
    await page.waitForFunction((name) => {
      const links = [...document.querySelectorAll(".decision .of")];
      return links.length > 0 && links.every((link) => link.getAttribute("href").endsWith(name));
    }, encodeURIComponent(volume));
  };
  await only();
  await page.reload();
  await only();
  await page.getByLabel("Result").selectOption("failed");
  await page.getByText("No matching decisions").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.waitForSelector(".decision");
});

test("a late answer for an earlier filter does not replace the list", async (page) => {
  await harness.visit(page, "decisions");
  const filter = page.getByLabel("Volume");
  await page
    .locator('select[name="volume"] option[value="bcache1"]')
    .waitFor({ state: "attached" });
  const late = await harness.holdBack(
    page,
    /api\/v1\/decisions\?/,
    (query) => query.get("volume") === "bcache0",
  );
  const answer = (volume) =>
    page.waitForResponse((found) => found.url().includes(`volume=${volume}`));
  await filter.selectOption("bcache0");
  const current = answer("bcache1");
  await filter.selectOption("bcache1");
  await (await current).finished();
  await late.release();
  const links = await page
    .locator(".decision .of")
    .evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert.ok(links.length > 0);
  assert.deepEqual([...new Set(links)], ["#/volume/bcache1"]);
});

test("older decisions that were asked for with a new filter leave no hole in the list", async (page) => {
  const asked = [];
  await page.route(/api\/v1\/decisions\?/, async (route) => {
    const query = new URL(route.request().url()).searchParams;
    const answer = await route.fetch();
    const { decisions } = await answer.json();
    const top = query.get("volume") ? 5000 : 2000;
    const next = Number(query.get("before_id")) || top;
    asked.push(next);
    const rows = Array.from({ length: 50 }, (_, i) => ({ ...decisions[0], id: next - 1 - i }));
    // As on a slow line: the button can be pressed before the new first rows are here.
    const late = query.get("volume") && { 5000: 400, 1950: 800 }[next];
    if (late) await new Promise((done) => setTimeout(done, late));
    return route.fulfill({ json: { decisions: rows, next_before_id: next - 50 } });
  });
  await harness.visit(page, "decisions");
  await page.getByText("50 decisions shown.").waitFor();
  await page
    .locator('select[name="volume"] option[value="bcache0"]')
    .waitFor({ state: "attached" });
  await page.getByLabel("Volume").selectOption("bcache0");
  const older = page.waitForResponse(/before_id=1950/);
  const more = page.getByRole("button", { name: "Show older" });
  await more.click();
  await (await older).finished();
  await page.waitForTimeout(300);
  await page.getByText("50 decisions shown.").waitFor();
  await more.click();
  await page.getByText("100 decisions shown.").waitFor();
  assert.equal(asked.at(-1), 4950);
});

test("a late answer for an earlier period does not replace the charts", async (page) => {
  await page.clock.install();
  await harness.openVolume(page, await harness.someVolume(page));
  const day = (query) => query.get("until_unix_s") - query.get("since_unix_s") === 86_400;
  const late = await harness.holdBack(page, /api\/v1\/decisions\?/, day, (body) => ({
    ...body,
    decisions: [],
    next_before_id: 1,
  }));
  await page.getByRole("button", { name: "24h" }).click();
  await page.waitForTimeout(200);
  // The charts are read every 5 s, but not while an answer is due.
  await page.clock.fastForward(6000);
  await page.waitForTimeout(200);
  assert.equal(late.held.length, 1);
  const shorter = page.waitForResponse(/api\/v1\/decisions\?/);
  await page.getByRole("button", { name: "3h" }).click();
  await (await shorter).finished();
  await late.release();
  await page.waitForTimeout(200);
  assert.equal(await page.getByText("Only the newest 0 decisions").count(), 0);
});

function laneOf(page, knob) {
  return page.locator(".lane", { hasText: knob }).locator(".lane-track");
}

async function openRange(page, range) {
  await page.goto(`${harness.URL_}/#/volume/bcache0?range=${range}`);
  // Attached, not visible: the first one may be narrower than a pixel.
  await page.locator(".lane-bar").first().waitFor({ state: "attached" });
}

test("a value that somebody else wrote is shown, and as theirs", async (page) => {
  await openRange(page, "30m");
  const bars = laneOf(page, "sequential_cutoff").locator(".lane-bar");
  const drawn = await bars.evaluateAll((all) =>
    all.map((bar) => [bar.dataset.by, bar.textContent]),
  );
  assert.deepEqual(drawn, [
    ["before", "4 MiB"],
    ["ebbgate", "1 MiB"],
    ["other", "64 KiB"],
  ]);
  const legend = page.locator(".lanes .legend");
  assert.match(await legend.textContent(), /written by somebody else/);
  assert.match(await bars.last().getAttribute("title"), /64 KiB \(written by somebody else\)/);
});

test("a setting is drawn as long as it lasted", async (page) => {
  await openRange(page, "7d");
  const track = laneOf(page, "writeback_percent");
  const drawn = await harness.shares(track, ".lane-bar");
  const meant = await track
    .locator(".lane-bar")
    .evaluateAll((all) => all.map((bar) => parseFloat(bar.style.width) / 100));
  const { width } = await track.boundingBox();
  assert.ok(
    meant.some((share) => share * width < 1),
    "the history has short values",
  );
  drawn.forEach(({ left, right }, i) => {
    const over = (right - left - meant[i]) * width;
    assert.ok(over < 1, `${over} px wider than its time`);
  });
});

test("what is older than the newest writes is hatched, and the page says so", async (page) => {
  let asked = null;
  await page.route(/\/actions\?/, async (route) => {
    const answer = await route.fetch();
    const { actions } = await answer.json();
    asked = new URL(route.request().url()).searchParams;
    const limit = Number(asked.get("limit"));
    const until = Number(asked.get("until_unix_s"));
    // One every 12 s, so that those that are read cover the last 100 minutes.
    const rows = Array.from({ length: limit }, (_, i) => ({
      ...actions[i % actions.length],
      ...{ id: 9000 - i, at_unix_s: until - 12 * (i + 1), knob: "writeback_delay" },
    }));
    return route.fulfill({ json: { actions: rows } });
  });
  await openRange(page, "3h");
  await page.getByText(/^Only the newest 500 writes are shown, since \d\d:\d\d:\d\d\.$/).waitFor();
  const track = laneOf(page, "writeback_delay");
  const [hatched] = await harness.shares(track, '[data-by="unknown"]');
  assert.equal(hatched.left, 0);
  assert.ok(Math.abs(hatched.right - 80 / 180) < 0.01, `hatched up to ${hatched.right}`);
  // Writes of the value that was there already would push out those that changed something.
  assert.deepEqual(asked.getAll("outcome"), ["changed", "manual", "refused", "failed"]);
});

test("no older decisions are offered once the list is full", async (page) => {
  await page.route(/api\/v1\/decisions\?/, async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    const before = Number(new URL(route.request().url()).searchParams.get("before_id")) || 10_001;
    const rows = Array.from({ length: 500 }, (_, i) => ({
      ...body.decisions[0],
      id: before - 1 - i,
    }));
    return route.fulfill({ json: { decisions: rows, next_before_id: before - 500 } });
  });
  await harness.visit(page, "decisions");
  const more = page.getByRole("button", { name: "Show older" });
  await page.getByText("500 decisions shown.").waitFor();
  await more.click();
  await page.getByText("1,000 decisions shown. Narrow the filters to see older ones.").waitFor();
  assert.ok(await more.isHidden());
});

test("a period that the address names is one of the server's clock", async (page) => {
  const now = Date.now() / 1000;
  await page.clock.install({ time: Date.now() + 2 * 3600_000 });
  const asked = (path) => page.waitForRequest((request) => request.url().includes(path));
  const since = (request) => Number(new URL(request.url()).searchParams.get("since_unix_s"));
  const decisions = asked("/decisions?");
  await page.goto(`${harness.URL_}/#/decisions?since=3600`);
  assert.ok(Math.abs(since(await decisions) - (now - 3600)) < 600);
  await page.locator(".decision").first().waitFor();
  await page.goto("about:blank");
  const samples = asked("/samples?");
  await page.goto(`${harness.URL_}/#/volume/bcache0?range=30m`);
  assert.ok(Math.abs(since(await samples) - (now - 1800)) < 600);
});

test("a gate change offers to stop tuning instead of undo", async (page) => {
  await page.goto(`${harness.URL_}/#/decisions?volume=bcache0`);
  await page.waitForSelector(".decision .writes");
  assert.equal(await page.getByRole("button", { name: /Undo/ }).count(), 0);
  await harness.unlock(page);
  await page.getByRole("button", { name: "Stop tuning bcache0" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Stop tuning bcache0" });
  await harness.shot(page, "stop-tuning");
  await dialog.getByRole("button", { name: "Stop tuning (advise)" }).click();
  await page.locator('.toast[data-state="good"]', { hasText: "advise" }).waitFor();
  const intent = await harness.lastIntent(page);
  assert.deepEqual(
    [intent.kind, intent.volume, intent.args],
    ["mode", "bcache0", { mode: "advise" }],
  );
  await harness.requestChange(page, "mode", "bcache0", { mode: "enforce" });
  // Without tuning there is nothing to stop.
  await page.goto(`${harness.URL_}/#/decisions?volume=bcache1`);
  await page.waitForSelector(".decision");
  assert.equal(await page.getByRole("button", { name: /^Stop tuning/ }).count(), 0);
});
