// SPDX-License-Identifier: GPL-2.0-only
// After ebbgated has ended: what the pages show, and what they say of it.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();
const stopped = { skip: harness.STOPPED_URL === undefined };
const died = { skip: harness.MANY_URL === undefined };

function said(page) {
  return page.locator(".banners").textContent();
}

test(
  "after an orderly stop there is no current data, and the way to the past",
  async (page) => {
    for (const name of ["heat", "pins", "overview"]) {
      await harness.visit(page, name, harness.STOPPED_URL);
      await page.getByRole("heading", { name: "No current data" }).waitFor();
      assert.equal(await page.getByText("No cached volumes found").count(), 0);
    }
    await page.getByText("ebbgated is not running.").waitFor();
    const banner = await said(page);
    assert.match(banner, /systemctl start ebbgated/);
    assert.doesNotMatch(banner, /never run|last data/);
    const pulse = page.locator(".pulse");
    assert.deepEqual(
      [await pulse.getAttribute("data-state"), await pulse.textContent()],
      ["stale", "no data"],
    );
    await page.locator("main").getByRole("link", { name: "Decisions" }).click();
    await page.locator(".decision .of").first().click();
    await page.getByText("so there is no current data").waitFor();
    await page.getByRole("heading", { name: "History" }).waitFor();
  },
  stopped,
);

const SHOWN_S = 10_800;

/** Where the last sample is in the last three hours, as a share of them. */
async function lastSample(page) {
  const until = Date.now() / 1000;
  const query = `since_unix_s=${until - 4000}&until_unix_s=${until}&points=5000`;
  const url = new URL(`/api/v1/volumes/bcache0/samples?${query}`, harness.STOPPED_URL);
  const { at_unix_s: at, mode } = await (await page.request.get(url.href)).json();
  return 1 - (until - at[mode.findLastIndex((each) => each !== null)]) / SHOWN_S;
}

test(
  "the timeline of settings ends with the last sample",
  async (page) => {
    await page.goto(`${harness.STOPPED_URL}/#/volume/bcache0?range=3h`);
    const track = page.locator(".lane", { hasText: "sequential_cutoff" }).locator(".lane-track");
    const rest = track.locator('[data-by="unknown"]');
    await rest.waitFor();
    const drawn = await harness.shares(track, ".lane-bar");
    const { right } = drawn.at(-2);
    // Samples of this period are a minute apart.
    const late = (right - (await lastSample(page))) * SHOWN_S;
    assert.ok(late > -10 && late < 70, `ends ${late} s after the last sample`);
    assert.deepEqual(drawn.at(-1), { left: right, right: 1 });
    assert.match(await rest.getAttribute("title"), /^not recorded/);
  },
  stopped,
);

test(
  "after a crash the last data is shown and called so",
  async (page) => {
    await harness.visit(page, "overview", harness.MANY_URL);
    await page.getByText("ebbgated is not running.").waitFor();
    assert.match(await said(page), /the page shows the last data/);
    assert.match(await page.locator('.pulse[data-state="stale"]').textContent(), / ago$/);
  },
  died,
);
