// SPDX-License-Identifier: GPL-2.0-only
// Advice: severity, commands, and undo of what was applied.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();

test(
  "advice shows its severity and a command on one line",
  async (page) => {
    await harness.visit(page, "advice");
    const words = await page.locator(".advice[data-weight] .badge").allTextContents();
    assert.deepEqual(new Set(words), new Set(["Problem", "Recommended", "Info"]));
    const order = ["Problem", "Recommended", "Info"].map((word) => words.indexOf(word));
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
    const lines = await page.locator(".command code").allTextContents();
    assert.ok(lines.some((line) => line.includes(" | sudo tee /sys/")));
    assert.ok(lines.some((line) => line.startsWith('ACTION=="add|change"')));
    for (const code of await page.locator(".command code").all()) {
      // Long lines scroll; they do not wrap.
      assert.equal(await code.evaluate((element) => getComputedStyle(element).whiteSpace), "pre");
    }
  },
  { width: 360, height: 760 },
);

for (const [why, clipboard] of [
  ["there is no clipboard", "undefined"],
  ["the clipboard refuses it", "{ writeText: () => Promise.reject(new Error()) }"],
]) {
  test(`a command is selected where ${why}`, async (page) => {
    const property = `{ configurable: true, value: ${clipboard} }`;
    await page.addInitScript(`Object.defineProperty(navigator, "clipboard", ${property})`);
    await harness.visit(page, "advice");
    const first = page.locator(".command").first();
    await first.getByRole("button", { name: "Copy" }).click();
    await first.getByRole("button", { name: "Press Ctrl+C" }).waitFor();
    const selected = await page.evaluate(() => getSelection().toString());
    assert.equal(selected, await first.locator("code").textContent());
  });
}

test("undo of an applied advice releases its knobs only", async (page) => {
  await harness.visit(page, "advice");
  const advised = page.locator(".advice[data-weight]");
  assert.ok((await advised.count()) > 3);
  assert.equal(await advised.getByRole("button", { name: /Undo/ }).count(), 0);
  assert.ok((await advised.getByRole("button", { name: /Apply/ }).count()) > 0);
  await harness.unlock(page);
  const previous = (await harness.lastIntent(page)).id;
  await page.getByRole("button", { name: "Undo EBB-205 of bcache0" }).click();
  const dialog = page.getByRole("dialog", { name: "Undo EBB-205" });
  await dialog.getByText("Other settings do not change.").waitFor();
  await dialog.getByRole("button", { name: "Undo", exact: true }).click();
  const good = page.locator('.toast[data-state="good"]', { hasText: "release" });
  await good.nth(1).waitFor();
  const intents = (await harness.intentsSince(page, previous)).map(({ kind, volume, args }) => [
    kind,
    volume,
    args,
  ]);
  assert.deepEqual(intents, [
    ["release", "bcache0", { knob: "congested_read_threshold_us" }],
    ["release", "bcache0", { knob: "congested_write_threshold_us" }],
  ]);
});
