// SPDX-License-Identifier: GPL-2.0-only
// Warm-ups: a file or a range of a volume, from one dialog.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();

async function openDialog(page, volume) {
  await harness.openVolume(page, volume);
  await harness.unlock(page);
  await page.getByRole("button", { name: "Warm …" }).press("Enter");
  return page.getByRole("dialog", { name: /^Warm data on / });
}

/** The last request, once its result is shown. */
async function result(page, title) {
  const toast = page.locator('.toast[data-state="good"]', { hasText: title });
  await toast.waitFor();
  await toast.getByRole("button", { name: "Dismiss" }).click();
  const { kind, volume, args } = await harness.lastIntent(page);
  return [kind, volume, args];
}

test("a range is warmed with sizes in units, and an error names its field", async (page) => {
  const volume = await harness.someVolume(page);
  const dialog = await openDialog(page, volume);
  const previous = (await harness.lastIntent(page)).id;
  await dialog.getByLabel("What").selectOption({ index: 1 });
  assert.equal(await dialog.getByRole("textbox", { name: "File" }).count(), 0);
  assert.equal(await dialog.getByLabel("From").inputValue(), "0");
  await dialog.getByLabel("From").fill("1GiB");
  for (const [to, wrong] of [
    ["10", "To: enter a number and B, KiB"],
    ["512MiB", "To: enter a size beyond From"],
  ]) {
    await dialog.getByLabel("To", { exact: true }).fill(to);
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText(wrong).waitFor();
  }
  assert.equal((await harness.lastIntent(page)).id, previous);
  await dialog.getByLabel("To", { exact: true }).fill("1.5 GiB");
  await page.keyboard.press("Enter");
  const range = { from_bytes: 2 ** 30, to_bytes: 1.5 * 2 ** 30 };
  assert.deepEqual(await result(page, "warm 1 GiB to 1.5 GiB"), ["warm", volume, range]);
});

test("a file is warmed as before, also after the choice of a range", async (page) => {
  const volume = await harness.someVolume(page);
  const dialog = await openDialog(page, volume);
  await dialog.getByLabel("What").selectOption({ index: 1 });
  await dialog.getByLabel("What").selectOption("A file");
  assert.ok(await dialog.getByLabel("From").isHidden());
  await dialog.getByRole("textbox", { name: "File" }).fill("srv/db");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("Enter the full path of the file").waitFor();
  await dialog.getByRole("textbox", { name: "File" }).fill("/srv/db");
  await dialog.getByLabel("MiB per second").fill("20");
  await page.keyboard.press("Enter");
  const args = { path: "/srv/db", bandwidth_bytes_per_s: 20 * 2 ** 20 };
  assert.deepEqual(await result(page, "warm /srv/db"), ["warm", null, args]);
});

test(
  "a range under way has units, and what dm-writecache cannot do is not offered",
  async (page) => {
    // Without the stream the page polls, so that a route can change volumes.
    await page.route(/api\/v1\/events/, (route) => route.abort());
    await page.route(/api\/v1\/volumes$/, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      json.volumes[0].jobs[0].target = `${2 ** 20}-${2 ** 30}`;
      json.volumes[1].kind = "dm-writecache";
      await route.fulfill({ response, json });
    });
    const offered = ["Warm …", "Pin …"].map((name) =>
      page.getByRole("button", { name, exact: true }),
    );
    await harness.openVolume(page, "bcache0");
    await page.getByText("Warm-up of 1 MiB to 1 GiB, ").waitFor();
    for (const button of offered) assert.ok(await button.isVisible());
    await harness.openVolume(page, "bcache1");
    await page.getByRole("button", { name: "Clean …" }).waitFor();
    for (const button of offered) assert.ok(await button.isHidden());
  },
  { expected: /ERR_FAILED/ },
);
