// SPDX-License-Identifier: GPL-2.0-only
// Use by keyboard: skip link, navigation, theme, help notes and the cutoff slider.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();

test("skip link, navigation and theme work by keyboard", async (page) => {
  await harness.visit(page, "overview");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.getByRole("link", { name: "Doctor" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(harness.PAGES.doctor);
  assert.equal(await page.locator('nav [aria-current="page"]').textContent(), "Doctor");
  await page.getByRole("button", { name: /^Theme/ }).press("Enter");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
});

test("a help note opens and closes by keyboard", async (page) => {
  await harness.openVolume(page, await harness.someVolume(page));
  await page.getByRole("button", { name: "What Hit ratio means" }).press("Enter");
  await page.getByText("Share of read requests").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("Share of read requests").waitFor({ state: "hidden" });
});

test("the button of a help note closes it again, by pointer and keyboard", async (page) => {
  await harness.visit(page, "overview");
  const sign = page.getByRole("button", { name: "What Hit ratio means" }).first();
  const note = page.getByText("Share of read requests").first();
  for (const press of [() => sign.click(), () => sign.press("Enter")]) {
    await press();
    await note.waitFor();
    const [at, shown] = [await sign.boundingBox(), await note.boundingBox()];
    assert.ok(Math.abs(shown.x - (at.x - 12)) < 2, "the note is below its button");
    await press();
    await note.waitFor({ state: "hidden" });
  }
});

test("the cutoff slider works by pointer and keyboard", async (page) => {
  await harness.openVolume(page, await harness.someVolume(page));
  const slider = page.getByRole("slider", {
    name: "Sequential cutoff to try",
  });
  await slider.focus();
  const reading = () => slider.getAttribute("aria-valuetext");
  await page.keyboard.press("Home");
  const lowest = await reading();
  assert.match(lowest, /^At a cutoff of .* 100% of bytes bypass the cache\.$/);
  await page.keyboard.press("End");
  assert.notEqual(await reading(), lowest);
  const box = await slider.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  assert.match(await reading(), /of bytes bypass the cache\.$/);
});

async function openTables(page) {
  await harness.openVolume(page, "bcache0");
  await page.evaluate(() => {
    for (const each of document.querySelectorAll("details")) each.open = true;
  });
  await page.locator(".table-box").nth(8).waitFor();
}

/** Resolves once the charts were drawn with new data. */
async function nextUpdate(page) {
  await (await page.waitForResponse(/\/samples\?/)).finished();
  await (await page.waitForResponse(/\/latency\?/)).finished();
  await page.waitForTimeout(300);
}

test("a table keeps the focus while its chart is updated", async (page) => {
  await openTables(page);
  for (const name of ["User I/O and write-back", "Cache hits, misses and bypasses"]) {
    const box = page.getByRole("region", { name });
    await box.focus();
    await nextUpdate(page);
    assert.ok(await box.evaluate((element) => element === document.activeElement), name);
  }
});

test("a screen reader is told once that not all decisions are marked", async (page) => {
  await page.route(/api\/v1\/decisions\?/, async (route) => {
    const { decisions } = await (await route.fetch()).json();
    const newest = decisions.slice(0, 5);
    await route.fulfill({ json: { decisions: newest, next_before_id: newest.at(-1).id } });
  });
  await harness.openVolume(page, "bcache0");
  const hint = page.getByText("decisions of this period are marked");
  await hint.waitFor();
  await hint.evaluate((element) => {
    window.changes = 0;
    const live = element.closest("[aria-live]");
    new MutationObserver((all) => (window.changes += all.length)).observe(live, {
      ...{ childList: true, subtree: true, characterData: true },
    });
  });
  await nextUpdate(page);
  assert.equal(await page.evaluate(() => window.changes), 0);
  assert.ok(await hint.isVisible());
});

test(
  "tables stay scrolled sideways while they are updated",
  async (page) => {
    await openTables(page);
    const boxes = page.locator(".table-box");
    // Tables that are hardly too wide cannot be scrolled so far. That of sequential runs goes away
    // while there are none.
    const scrolled = await boxes.evaluateAll((all) => {
      for (const each of all) each.scrollLeft = 20;
      const scrolled = all.filter((each) => each.scrollLeft === 20).map((each) => each.ariaLabel);
      return scrolled.filter((label) => label !== "Bytes by length of sequential run");
    });
    assert.ok(scrolled.length > 4, `${scrolled}`);
    await nextUpdate(page);
    const back = await boxes.evaluateAll((all) =>
      all.filter((each) => each.scrollLeft < 20).map((each) => each.ariaLabel),
    );
    assert.deepEqual(
      back.filter((label) => scrolled.includes(label)),
      [],
    );
  },
  { width: 360, height: 760 },
);
