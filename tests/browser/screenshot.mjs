// SPDX-License-Identifier: GPL-2.0-only
// Takes the picture of the dashboard for README.md; screenshot.py runs it.
import * as harness from "./harness.mjs";

const browser = await harness.browse();
try {
  const { page, assertClean } = await harness.tab(browser, { width: 1280, height: 800 });
  await harness.visit(page, "overview");
  // The recording is repeated every half minute; wait for a moment with write-back.
  const values = page.locator(".volume-card", { hasText: "bcache0" }).locator("dd");
  await values.filter({ hasText: /^(open|resting)/ }).waitFor({ timeout: 90_000 });
  await page.screenshot({ path: process.env.EBBGATE_PICTURE });
  assertClean();
} finally {
  await browser.close();
}
