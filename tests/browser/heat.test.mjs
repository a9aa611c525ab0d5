// SPDX-License-Identifier: GPL-2.0-only
// Heat: misses by place, by pointer and keyboard; what is moved, would be moved, or how to switch it on.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const test = harness.testFile();

async function volumesBy(page) {
  const response = await page.request.get(`${harness.URL_}/api/v1/volumes`);
  const { volumes } = await response.json();
  const of = (wanted) => volumes.find(wanted)?.volume;
  return {
    enforce: of((each) => each.promotion && each.mode === "enforce"),
    advise: of((each) => each.promotion && each.mode === "advise"),
    off: of((each) => !each.promotion),
  };
}

async function openHeat(page, volume) {
  await page.goto(`${harness.URL_}/#/heat/${encodeURIComponent(volume)}`);
  await page.waitForSelector(".miss-map rect");
}

test("misses of each part are read by keyboard and pointer", async (page) => {
  const { enforce } = await volumesBy(page);
  await harness.visit(page, "heat");
  await page.getByRole("link", { name: enforce, exact: true }).click();
  const map = page.getByRole("slider", {
    name: "Misses by place on the volume",
  });
  await map.focus();
  const reading = () => map.getAttribute("aria-valuetext");
  assert.match(
    await reading(),
    /misses per minute, half of them in .* of the volume/,
  );
  await page.keyboard.press("End");
  assert.match(await reading(), /^8,160 to 8,192 MiB: .* misses per minute/);
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  assert.equal(await map.getAttribute("aria-valuenow"), "64");
  assert.match(await reading(), /^2,048 to 2,080 MiB: /);
  await page.keyboard.press("Tab");
  assert.match(await reading(), /half of them/);
  const box = await map.boundingBox();
  await page.mouse.move(box.x + 2, box.y + 2);
  assert.match(await reading(), /^0 to 32 MiB: /);
});

test(
  "a long path leaves the figures beside it in view",
  async (page) => {
    await openHeat(page, (await volumesBy(page)).enforce);
    const files = page.getByRole("region", {
      name: "Files with the most misses",
    });
    await files.getByText(/system-disk.qcow2, guest:/).waitFor();
    const box = await files
      .getByRole("columnheader", { name: "Misses/min" })
      .boundingBox();
    assert.ok(box.x + box.width <= 360, `it ends at ${box.x + box.width} px`);
  },
  { width: 360, height: 760 },
);

test("what was moved and what it saved is shown, by file", async (page) => {
  await openHeat(page, (await volumesBy(page)).enforce);
  const moves = page.locator(".card", { hasText: "Moves into the cache" });
  await moves.getByText("6.9 min ± 38 s").waitFor();
  await moves.getByText(/MiB are moved, \d+ held out to compare/).waitFor();
  const files = page.getByRole("region", {
    name: "Files with the most misses",
  });
  await files.getByText("db.orders_pkey").waitFor();
  await page.getByText("Hottest parts of 1 MiB").click();
  await page
    .getByText("moved into the cache", { exact: true })
    .last()
    .waitFor();
  await page.getByText("Hit ratio by size of the cache").waitFor();
});

test("whose requests missed is shown, by cgroup and by file", async (page) => {
  await openHeat(page, (await volumesBy(page)).enforce);
  const row = (name) => page.getByRole("row", { name });
  assert.match(await row(/postgresql@15-main/).innerText(), /14,456\s+677$/);
  assert.match(await row(/direct I\/O, metadata/).innerText(), /3,439\s+677$/);
  assert.match(await row(/others, reads and writes/).innerText(), /15\.4\s*$/);
  await row(/inode 262177 on 253:4/).waitFor();
});

test("in advise the page says what would be moved", async (page) => {
  await openHeat(page, (await volumesBy(page)).advise);
  await page
    .getByText(/^In enforce: would move \d+ MiB, and hold out \d+ MiB$/)
    .waitFor();
  await page.getByText("would be moved in enforce").first().waitFor();
});

test("without promote_hot the page offers a policy that validates", async (page) => {
  await openHeat(page, (await volumesBy(page)).off);
  const policy = await page
    .getByRole("region", { name: "Policy with promote_hot" })
    .textContent();
  const response = await page.request.post(
    `${harness.URL_}/api/v1/policies/check`,
    {
      headers: { Origin: harness.URL_ },
      data: { name: "offered", text: policy },
    },
  );
  const found = await response.json();
  assert.deepEqual([found.ok, found.errors], [true, []]);
  await page.getByRole("link", { name: "Edit policies" }).click();
  await page.waitForSelector(harness.PAGES.policy);
});
