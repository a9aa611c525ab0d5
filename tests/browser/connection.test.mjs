// SPDX-License-Identifier: GPL-2.0-only
// The connection to the server: first requests, required token, errors and recovery.
import assert from "node:assert/strict";
import * as harness from "./harness.mjs";

const UNAUTHORIZED = /status of 401/;
const test = harness.testFile();

test("the first page load makes two API requests only", async (page) => {
  const requested = [];
  page.on("request", (request) => requested.push(new URL(request.url()).pathname));
  await harness.visit(page, "overview");
  await page.locator('.pulse[data-state="live"]').waitFor();
  const api = requested.filter((path) => path.startsWith("/api/"));
  assert.deepEqual(api.sort(), ["/api/v1/events", "/api/v1/intents"]);
});

test("the pages work below a path of a proxy", async (page) => {
  const below = `${harness.URL_}/storage/`;
  await page.route(/./, (route) => {
    const url = route.request().url();
    // What is not below the path belongs to others.
    return url.startsWith(below)
      ? route.continue({ url: url.replace("/storage/", "/") })
      : route.abort();
  });
  await page.goto(below);
  await page.locator('.pulse[data-state="live"]').waitFor();
  await page.locator(".volume-card a").first().click();
  await page.locator(".lane-bar").first().waitFor();
  await harness.unlock(page);
});

test(
  "a server that requires the token for reading shows data once it has it",
  async (page) => {
    await page.goto(`${harness.CLOSED_URL}/`);
    await page.getByText("Token required.").waitFor();
    assert.equal(await page.locator(".volume-card, .volume-row").count(), 0);
    await harness.shot(page, "token-needed");
    await page.getByRole("button", { name: "Changes: locked" }).click();
    const dialog = page.getByRole("dialog", { name: "Token for changes" });
    await dialog.getByLabel("Token").fill(harness.TOKEN);
    await page.keyboard.press("Enter");
    await page.getByText("Token required.").waitFor({ state: "detached" });
    await page.locator(".volume-card, .volume-row").first().waitFor();
    await page.locator('.pulse[data-state="live"]').waitFor();
  },
  { skip: harness.CLOSED_URL === undefined, expected: UNAUTHORIZED },
);

test(
  "a token that the server no longer takes is forgotten",
  async (page) => {
    await page.addInitScript(() => sessionStorage.setItem("ebbgate-token", "the one before"));
    await page.goto(`${harness.CLOSED_URL}/`);
    await page.getByText("Token required.").waitFor();
    await page.getByRole("button", { name: "Changes: locked" }).click();
    const dialog = page.getByRole("dialog", { name: "Token for changes" });
    await dialog.getByLabel("Token").fill(harness.TOKEN);
    await page.keyboard.press("Enter");
    await page.locator('.pulse[data-state="live"]').waitFor();
    await page.getByRole("button", { name: "Changes: allowed" }).waitFor();
  },
  { skip: harness.CLOSED_URL === undefined, expected: UNAUTHORIZED },
);

test("a browser that stores nothing shows the pages and takes a token", async (page) => {
  await page.addInitScript(() => {
    for (const name of ["localStorage", "sessionStorage"]) {
      const get = () => {
        throw new DOMException("Access is denied for this document.", "SecurityError");
      };
      Object.defineProperty(window, name, { get });
    }
  });
  await harness.visit(page, "overview");
  await page.getByRole("button", { name: /^Theme/ }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await harness.unlock(page);
  await page.getByRole("button", { name: "Changes: allowed" }).waitFor();
});

test(
  "a failed request is retried",
  async (page) => {
    const error = { code: "unavailable", message: "the history is busy", hint: null, place: null };
    for (const path of ["decisions", "advice", "policies", "doctor"]) {
      await page.route(
        new RegExp(`/api/v1/${path}(\\?|$)`),
        (route) => route.fulfill({ status: 503, json: { error } }),
        { times: 1 },
      );
    }
    for (const name of ["decisions", "advice", "policy", "doctor"]) {
      await page.goto(`${harness.URL_}/#/${name}`);
      await page.getByText("the history is busy").waitFor();
      await page.waitForSelector(harness.PAGES[name]);
    }
  },
  { expected: /status of 503/ },
);

const isStream = (request) => request.url().endsWith("/events");

function show(page, state) {
  return page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

test("a tab that nobody looks at keeps no connection", async (page) => {
  await page.clock.install();
  await harness.visit(page, "overview");
  await page.locator('.pulse[data-state="live"]').waitFor();
  const ended = page.waitForEvent("requestfailed", isStream);
  await show(page, "hidden");
  await page.clock.fastForward(31_000);
  await ended;
  const begun = page.waitForRequest(isStream);
  await show(page, "visible");
  await begun;
  await page.locator('.pulse[data-state="live"]').waitFor();
});

test("a tab that is opened in the background keeps no connection either", async (page) => {
  await page.addInitScript(() =>
    Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true }),
  );
  await page.clock.install();
  await harness.visit(page, "overview");
  await page.locator('.pulse[data-state="live"]').waitFor();
  for (const again of [true, false]) {
    const ended = page.waitForEvent("requestfailed", isStream);
    await page.clock.fastForward(31_000);
    await ended;
    if (!again) break;
    // The network comes back while nobody looks.
    const begun = page.waitForRequest(isStream);
    await page.evaluate(() => window.dispatchEvent(new Event("online")));
    await begun;
  }
  const begun = page.waitForRequest(isStream);
  await show(page, "visible");
  await begun;
});

test(
  "a server that answers without a stream is not reported as lost",
  async (page) => {
    const error = { code: "unavailable", message: "too many streams", hint: null, place: null };
    await page.addInitScript(() => {
      window.seen = new Set();
      new MutationObserver(() => {
        const banners = document.querySelector(".banners");
        if (banners) window.seen.add(banners.textContent);
      }).observe(document, { childList: true, subtree: true, characterData: true });
    });
    await page.route(/api\/v1\/events/, (route) => route.fulfill({ status: 503, json: { error } }));
    await page.clock.install();
    await harness.visit(page, "overview");
    await page.locator('.pulse[data-state="live"]').waitFor();
    const refused = page.waitForResponse(/api\/v1\/events/);
    await page.clock.fastForward(11_000);
    await (await refused).finished();
    await page.waitForTimeout(300);
    const seen = await page.evaluate(() => [...window.seen]);
    assert.deepEqual(
      seen.filter((text) => text.includes("Connection lost")),
      [],
    );
  },
  { expected: /status of 503/ },
);

test(
  "a daemon that cannot be asked is not said to be down",
  async (page) => {
    await page.route(/api\/v1\/events/, (route) => route.abort());
    await page.route(/api\/v1\/volumes$/, (route) =>
      route.fulfill({
        json: { now_unix_s: 1, daemon_alive: null, history: null, unreadable: [], volumes: [] },
      }),
    );
    await harness.visit(page, "overview");
    await page.getByText("Whether ebbgated is running is unknown.").waitFor();
  },
  { expected: /ERR_FAILED/ },
);

test(
  "volumes with a status of another version are not said to be absent",
  async (page) => {
    let left = 1;
    await page.route(/api\/v1\/events/, (route) => route.abort());
    await page.route(/api\/v1\/volumes$/, async (route) => {
      const all = await (await route.fetch()).json();
      const unreadable = all.volumes.slice(left).map((each) => each.volume);
      await route.fulfill({
        json: { ...all, unreadable, volumes: all.volumes.slice(0, left) },
      });
    });
    await harness.visit(page, "overview");
    await page.getByText("The status of 2 volumes cannot be read.").waitFor();
    left = 0;
    for (const name of ["heat", "pins", "overview"]) {
      await page.goto("about:blank");
      await harness.visit(page, name);
      await page.getByText("cannot be read: bcache0, bcache1, vg-data2.").waitFor();
      assert.equal(await page.getByText("has found none").count(), 0);
    }
  },
  { expected: /ERR_FAILED/ },
);

test("changes of a history that was replaced are no longer listed", async (page) => {
  const request = (id, kind) => ({
    ...{ id, kind, volume: "bcache0", args: {}, who: "admin", at_unix_s: id },
    ...{ resolved_unix_s: id, ok: true, outcome: kind },
  });
  let rows = [request(900, "hold")];
  await page.route(/api\/v1\/intents\?/, (route) => route.fulfill({ json: { intents: rows } }));
  await page.route(/api\/v1\/events/, async (route) => {
    const body = rows[0].id === 900 ? ": alive\n\n" : "event: reset\nid: 0.0.0.0.0.1\ndata: {}\n\n";
    await route.fulfill({ headers: { "content-type": "text/event-stream" }, body });
  });
  await harness.visit(page, "decisions");
  // Not a click: the list above it grows once the volumes are known.
  await page.locator("summary", { hasText: "Requested changes" }).press("Enter");
  const listed = page.getByRole("region", { name: "Requested changes" }).locator("tbody tr");
  await listed.filter({ hasText: "hold" }).waitFor();
  rows = [request(2, "mode"), request(1, "drain")];
  await listed.filter({ hasText: "mode" }).waitFor();
  assert.deepEqual(await listed.locator("td:nth-child(4)").allTextContents(), ["mode ", "drain "]);
});

test(
  "a lost connection is reported and recovers by itself",
  async (page) => {
    await harness.visit(page, "overview");
    await page.context().setOffline(true);
    await page.getByText("Connection lost.").waitFor();
    await harness.shot(page, "server-gone");
    await page.context().setOffline(false);
    await page.getByText("Connection lost.").waitFor({ state: "detached" });
    await page.locator('.pulse[data-state="live"]').waitFor();
  },
  { expected: /ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/ },
);
