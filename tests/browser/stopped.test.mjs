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

test(
  "after a crash the last data is shown and called so",
  async (page) => {
    await harness.visit(page, "overview", harness.MANY_URL);
    await page.getByText("ebbgated is not running.").waitFor();
    assert.match(await said(page), /the page shows the last data/);
    assert.match(
      await page.locator('.pulse[data-state="stale"]').textContent(),
      / ago$/,
    );
  },
  died,
);
