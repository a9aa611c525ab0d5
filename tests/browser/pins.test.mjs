// SPDX-License-Identifier: GPL-2.0-only
// Pins: the pinned files of all volumes and of one; a file is pinned, and unpinned after a question.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();

/** The pins of the page's first volume with a pin, as the API gives them. */
async function pinned(page) {
  const response = await page.request.get(`${harness.URL_}/api/v1/volumes`);
  const { volumes } = await response.json();
  return volumes.find(({ pins }) => pins.length > 0);
}

test("the page lists each pin with its volume, size, state and why", async (page) => {
  const { title, volume, pins } = await pinned(page);
  await harness.visit(page, "pins");
  const list = page.getByRole("list", { name: `Pinned files on ${title}` });
  const rows = await list.getByRole("listitem").allTextContents();
  assert.equal(rows.length, pins.length);
  assert.match(rows[0], /system-disk\.qcow2 hot700 MiB, 21% of the cache · 100% of touches hit/);
  assert.match(rows[1], /^\/srv\/db\/orders absentnot looked at yetby admin/);
  await page.getByRole("link", { name: title, exact: true }).click();
  await page.getByRole("list", { name: "Pinned files", exact: true }).waitFor();
  assert.match(page.url(), new RegExp(`/volume/${volume}$`));
});

test("a file is pinned by keyboard, once its path is a full one", async (page) => {
  await harness.visit(page, "pins");
  await harness.unlock(page);
  const previous = (await harness.lastIntent(page)).id;
  const opener = page.getByRole("button", { name: "Pin a file …" });
  await opener.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Pin a file" });
  await dialog.getByLabel("File").fill("srv/db/hot");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("Enter the full path of the file").waitFor();
  assert.equal((await harness.lastIntent(page)).id, previous);
  await dialog.getByLabel("File").fill(" /srv/db/hot ");
  await page.keyboard.press("Enter");
  await page.locator('.toast[data-state="good"]', { hasText: "Pin /srv/db/hot" }).waitFor();
  const { kind, volume, args } = await harness.lastIntent(page);
  assert.deepEqual([kind, volume, args], ["pin", null, { path: "/srv/db/hot" }]);
  await opener.press("Enter");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.ok(await opener.evaluate((element) => element === document.activeElement));
});

test("unpin asks first, and names the pin by its number", async (page) => {
  const { title, volume, pins } = await pinned(page);
  const { id, path } = pins[1];
  await harness.openVolume(page, volume);
  await harness.unlock(page);
  const previous = (await harness.lastIntent(page)).id;
  const unpin = page.getByRole("button", { name: `Unpin … ${path}` });
  const dialog = page.getByRole("dialog", { name: `Unpin a file on ${title}` });
  await unpin.click();
  await dialog.getByText(path).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await harness.lastIntent(page)).id, previous);
  await unpin.click();
  await dialog.getByRole("button", { name: "Unpin" }).click();
  await page.locator('.toast[data-state="good"]', { hasText: `unpin ${path}` }).waitFor();
  const intent = await harness.lastIntent(page);
  assert.deepEqual([intent.kind, intent.volume, intent.args], ["unpin", null, { pin: id }]);
});

test(
  "the focus stays in the list while another pin ends",
  async (page) => {
    const { volume, pins } = await pinned(page);
    let without = 0;
    // Without the stream the page polls, so that a route can remove a pin.
    await page.route(/api\/v1\/events/, (route) => route.abort());
    await page.route(/api\/v1\/volumes$/, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const each of json.volumes) each.pins = each.pins.filter(({ id }) => id !== without);
      await route.fulfill({ response, json });
    });
    await harness.openVolume(page, volume);
    const list = page.getByRole("list", { name: "Pinned files", exact: true });
    const last = page.getByRole("button", { name: `Unpin … ${pins[1].path}` });
    await last.focus();
    without = pins[0].id;
    await list.getByText("system-disk.qcow2").waitFor({ state: "detached" });
    assert.ok(await last.evaluate((element) => element === document.activeElement));
  },
  { expected: /ERR_FAILED/ },
);

test(
  "without any pin the page says so and still pins",
  async (page) => {
    await page.route(/api\/v1\/events/, (route) => route.abort());
    await page.route(/api\/v1\/volumes$/, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      for (const each of json.volumes) each.pins = [];
      await route.fulfill({ response, json });
    });
    await harness.visit(page, "pins");
    await page.getByRole("heading", { name: "No pinned files" }).waitFor();
    await page.getByRole("button", { name: "Pin a file …" }).click();
    await page.getByRole("dialog", { name: "Pin a file" }).waitFor();
  },
  { expected: /ERR_FAILED/ },
);
