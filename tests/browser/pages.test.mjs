// SPDX-License-Identifier: GPL-2.0-only
// Every page in both themes and three widths: no errors, no serious axe violations, no horizontal
// scrolling. The screenshots are kept.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import * as harness from "./harness.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = [360, 1280, 2560];

let browser;
before(async () => {
  browser = await harness.browse();
});
after(() => browser.close());

async function violations(page) {
  // The debugger is not subject to the content security policy. Once for each document.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"] }),
  );
  return found
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).join("; ")}`);
}

async function sideways(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}

async function look(tab, name, width, theme) {
  assert.deepEqual(await violations(tab.page), [], `axe on ${name}, ${width} px, ${theme}`);
  assert.ok((await sideways(tab.page)) <= 0, `${name} is wider than ${width} px`);
  await harness.shot(tab.page, `${name}-${width}-${theme}`);
}

/** Checks a page at all widths, resizing the window in between. */
async function lookAtAll(tab, name, widths, theme) {
  for (const width of widths) {
    await harness.resize(tab.page, width);
    await look(tab, name, width, theme);
  }
}

for (const theme of ["light", "dark"]) {
  test(`every page at ${WIDTHS.join(", ")} px, ${theme}`, async () => {
    // Alternates the first width, so that pages are resized in both directions.
    let widths = theme === "light" ? WIDTHS : WIDTHS.toReversed();
    const tab = await harness.tab(browser, { width: widths[0], theme });
    const volume = await harness.someVolume(tab.page);
    const pages = Object.keys(harness.PAGES).map((name) => [name, visit]);
    for (const [name, open] of [...pages, ["volume", openWhole], ["volume-heat", openHeat]]) {
      await harness.resize(tab.page, widths[0]);
      await open(tab.page, name, volume);
      await lookAtAll(tab, name, widths, theme);
      widths = widths.toReversed();
    }
    tab.assertClean();
    await tab.close();
  });
}

test("the dialogs of warm-ups and pins keep the layout in both themes", async () => {
  for (const [theme, width] of [
    ["light", 360],
    ["dark", 1280],
    ["dark", 360],
    ["light", 1280],
  ]) {
    const tab = await harness.tab(browser, { width, theme, height: 760 });
    await harness.openVolume(tab.page, await harness.someVolume(tab.page));
    for (const [opener, name] of [
      ["Warm …", "warm"],
      ["Pin …", "pin"],
      [/^Unpin …/, "unpin"],
    ]) {
      await tab.page.getByRole("button", { name: opener }).first().click();
      const dialog = tab.page.getByRole("dialog");
      if (name === "warm") await dialog.getByLabel("What").selectOption({ index: 1 });
      await look(tab, `dialog-${name}`, width, theme);
      await tab.page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
    tab.assertClean();
    await tab.close();
  }
});

function visit(page, name) {
  return harness.visit(page, name);
}

async function openHeat(page, _, volume) {
  await page.goto(`${harness.URL_}/#/heat/${encodeURIComponent(volume)}`);
  await page.waitForSelector(".volume-heat .miss-map rect");
  await openDetails(page);
}

async function openWhole(page, _, volume) {
  await harness.openVolume(page, volume);
  await openDetails(page);
}

async function openDetails(page) {
  for (const details of await page.locator("details").all()) {
    if (await details.evaluate((element) => !element.open)) {
      await details.locator("summary").click();
    }
  }
}

test("many volumes without a daemon are marked as stale and keep the layout", async (context) => {
  if (!harness.MANY_URL) return context.skip("EBBGATE_MANY_URL is not set");
  for (const [theme, widths] of [
    ["light", [360, 2560]],
    ["dark", [1280]],
  ]) {
    const tab = await harness.tab(browser, { width: widths[0], theme });
    await harness.visit(tab.page, "overview", harness.MANY_URL);
    await tab.page.getByText("ebbgated is not running.").waitFor();
    assert.ok((await tab.page.locator(".volume-row.stale").count()) > 20);
    await lookAtAll(tab, "many", widths, theme);
    await tab.page.getByRole("button", { name: "Show cards" }).click();
    await tab.page.waitForSelector(".volume-card");
    for (const width of widths) {
      await harness.resize(tab.page, width);
      assert.ok((await sideways(tab.page)) <= 0, `cards are wider than ${width} px`);
      await harness.shot(tab.page, `many-cards-${width}`);
    }
    tab.assertClean();
    await tab.close();
  }
});

test("every page reports a missing history", async (context) => {
  if (!harness.EMPTY_URL) return context.skip("EBBGATE_EMPTY_URL is not set");
  const tab = await harness.tab(browser, { width: 360, height: 760 });
  for (const name of Object.keys(harness.PAGES)) {
    await tab.page.goto(`${harness.EMPTY_URL}/#/${name}`);
    await tab.page.getByText("The history cannot be read:").first().waitFor();
    await look(tab, `empty-${name}`, 360, "light");
  }
  // The browser prints the error status of the server.
  tab.assertClean(/status of 503/);
  await tab.close();
});
