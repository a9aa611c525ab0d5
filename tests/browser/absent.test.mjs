// SPDX-License-Identifier: GPL-2.0-only
// What is kept for volumes that are not here: a closed list on the overview.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();
const SUMMARY = "Settings kept for 1 volume not found";

test("the overview lists what is kept, and the command that drops it", async (page) => {
  await harness.visit(page, "overview");
  const kept = page.getByRole("region", { name: "bcache0, not found" });
  await page.getByText(SUMMARY).waitFor();
  assert.ok(!(await kept.isVisible()));
  await page.getByText(SUMMARY).click();
  await kept
    .getByText("Not applied: another volume has the name bcache0 now.")
    .waitFor();
  await kept
    .getByText(/Kept: mode enforce, since .*; writeback_percent 20\./)
    .waitFor();
  await kept
    .getByText(/^sudo ebbgate forget 0b1e5000-0000-4000-8000-000000000007$/)
    .waitFor();
  for (const width of [360, 1280]) {
    await harness.resize(page, width);
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - window.innerWidth,
    );
    assert.ok(over <= 0, `the page is wider than ${width} px`);
  }
  // The health comes again every few seconds.
  await page.waitForTimeout(6000);
  assert.ok(await kept.isVisible(), "an open list is closed by new data");
});
