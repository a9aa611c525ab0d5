// SPDX-License-Identifier: GPL-2.0-only
// Every page in both themes and three widths: no complaint, nothing that axe calls serious, nothing
// that has to be scrolled sideways. The screenshots are kept.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import * as bench from "./bench.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = [360, 1280, 2560];

let browser;
before(async () => {
  browser = await bench.browse();
});
after(() => browser.close());

async function violations(page) {
  // By the debugger, which no content security policy keeps out; once for each document.
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
  await bench.shot(tab.page, `${name}-${width}-${theme}`);
}

/** Looks at what is drawn at one width at the others, too: a window that is made wider or narrower. */
async function lookAtAll(tab, name, widths, theme) {
  for (const width of widths) {
    await bench.resize(tab.page, width);
    await look(tab, name, width, theme);
  }
}

for (const theme of ["light", "dark"]) {
  test(`every page at ${WIDTHS.join(", ")} px, ${theme}`, async () => {
    // Each page is drawn narrow in one theme and wide in the other.
    let widths = theme === "light" ? WIDTHS : WIDTHS.toReversed();
    const tab = await bench.tab(browser, { width: widths[0], theme });
    const volume = await bench.someVolume(tab.page);
    for (const name of [...Object.keys(bench.PAGES), "volume"]) {
      await bench.resize(tab.page, widths[0]);
      await (name === "volume" ? openWhole(tab.page, volume) : bench.visit(tab.page, name));
      await lookAtAll(tab, name, widths, theme);
      widths = widths.toReversed();
    }
    tab.quiet();
    await tab.close();
  });
}

async function openWhole(page, volume) {
  await bench.openVolume(page, volume);
  for (const details of await page.locator("details").all()) {
    await details.locator("summary").click();
  }
}

test("many volumes without a daemon: stale, said so, and no layout breaks", async (context) => {
  if (!bench.MANY_URL) return context.skip("EBBGATE_MANY_URL is not set");
  for (const [theme, widths] of [
    ["light", [360, 2560]],
    ["dark", [1280]],
  ]) {
    const tab = await bench.tab(browser, { width: widths[0], theme });
    await bench.visit(tab.page, "overview", bench.MANY_URL);
    await tab.page.getByText("ebbgated is not running.").waitFor();
    assert.ok((await tab.page.locator(".volume-row.stale").count()) > 20);
    await lookAtAll(tab, "many", widths, theme);
    await tab.page.getByRole("button", { name: "Show cards" }).click();
    await tab.page.waitForSelector(".volume-card");
    for (const width of widths) {
      await bench.resize(tab.page, width);
      assert.ok((await sideways(tab.page)) <= 0, `cards are wider than ${width} px`);
      await bench.shot(tab.page, `many-cards-${width}`);
    }
    tab.quiet();
    await tab.close();
  }
});

test("without any history every page says what it does not know", async (context) => {
  if (!bench.EMPTY_URL) return context.skip("EBBGATE_EMPTY_URL is not set");
  const tab = await bench.tab(browser, { width: 360, height: 760 });
  for (const name of Object.keys(bench.PAGES)) {
    await tab.page.goto(`${bench.EMPTY_URL}/#/${name}`);
    await tab.page.getByText("The history cannot be read.").waitFor();
    await look(tab, `empty-${name}`, 360, "light");
  }
  // That the history cannot be read is an answer with a status, which the browser prints.
  tab.quiet(/status of 503/);
  await tab.close();
});
