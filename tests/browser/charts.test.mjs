// SPDX-License-Identifier: GPL-2.0-only
// The tables of charts have what the charts have.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();

test("high contrast keeps what only a background shows", async (page) => {
  await harness.openVolume(page, "bcache0");
  // Which ones, not how many: the charts are drawn again every few seconds.
  const colours = async (selector) => {
    const all = await page
      .locator(selector)
      .evaluateAll((found) => found.map((each) => getComputedStyle(each).backgroundColor));
    return [...new Set(all)].sort();
  };
  const signs = [".swatch", ".lane-swatch", ".lane-bar", ".segment", ".mark"];
  const before = await Promise.all(signs.map(colours));
  await page.emulateMedia({ forcedColors: "active" });
  assert.deepEqual(await Promise.all(signs.map(colours)), before);
  const modes = await colours('[aria-label="Mode"] button');
  assert.equal(modes.length, 2, `${modes}`);
});

async function openTable(page, title) {
  const chart = page.locator(".chart", { hasText: title });
  // Not a click: the charts above it grow once their data is there.
  await chart.locator("summary").press("Enter");
  await chart.locator("details[open]").waitFor();
  return chart;
}

test("a table of latencies has no rows of the other operation", async (page) => {
  // In this part of the history users only write.
  await harness.openVolume(page, "bcache1");
  const chart = await openTable(page, "Request latency");
  const rows = chart.locator("tbody tr");
  await chart.getByRole("button", { name: "write" }).click();
  await rows.first().waitFor();
  await chart.getByRole("button", { name: "read" }).click();
  await chart.locator(".reading", { hasText: "No read requests in this period." }).waitFor();
  await chart.locator("details").getByText("No data.").waitFor();
  assert.equal(await rows.count(), 0);
});

test(
  "without a daemon a table that is opened is filled",
  async (page) => {
    await page.goto(`${harness.MANY_URL}/#/volume/bcache0`);
    await page.locator(".bars-axis span").first().waitFor();
    for (const title of [
      "Idle periods by length",
      "Bytes by length of sequential run",
      "Hit ratio by size of the cache",
    ]) {
      const chart = await openTable(page, title);
      await chart.locator("tbody tr").first().waitFor();
    }
  },
  { skip: harness.MANY_URL === undefined },
);
