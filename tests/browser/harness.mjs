// SPDX-License-Identifier: GPL-2.0-only
// Starts a browser with an empty profile, and collects its errors. README.md lists the environment
// variables.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

export const URL_ = need("EBBGATE_URL").replace(/\/$/, "");
export const TOKEN = need("EBBGATE_TOKEN");
export const MANY_URL = process.env.EBBGATE_MANY_URL;
export const STOPPED_URL = process.env.EBBGATE_STOPPED_URL;
export const EMPTY_URL = process.env.EBBGATE_EMPTY_URL;
export const CLOSED_URL = process.env.EBBGATE_CLOSED_URL;
export const POLICIES = process.env.EBBGATE_POLICIES;
export const ARTEFACTS = need("EBBGATE_ARTEFACTS");
// The limit for every wait; longer on an emulated machine.
export const PATIENCE_MS = Number(process.env.EBBGATE_PATIENCE_MS ?? 30_000);

/** Each page with a selector that matches once it is drawn. */
export const PAGES = {
  overview: ".volume-card, .volume-row, .empty h2",
  heat: ".heat-item .reading, .empty h2",
  pins: ".pins li, .empty h2",
  decisions: ".decision, .empty h2",
  advice: ".advice, .empty h2",
  policy: ".pick",
  doctor: ".card h2 >> text=Signals",
};

function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; see tests/browser/README.md`);
  return value;
}

export async function browse() {
  mkdirSync(ARTEFACTS, { recursive: true });
  return chromium.launch({
    executablePath: process.env.EBBGATE_CHROMIUM ?? "/usr/bin/chromium",
    // Its sandbox cannot be set up by root.
    chromiumSandbox: process.getuid() !== 0,
    args: [
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-default-apps",
      "--disable-domain-reliability",
      "--disable-sync",
      "--no-first-run",
      "--no-pings",
    ],
  });
}

/**
 * Starts a browser for the tests of a file. Returns a function that defines a test, which gets a page
 * in its own tab. `expected`: a pattern of messages that the test causes itself.
 */
export function testFile() {
  let browser;
  before(async () => {
    browser = await browse();
  });
  after(() => browser.close());
  return (title, body, { expected, skip = false, ...options } = {}) =>
    test(title, { skip }, async () => {
      const opened = await tab(browser, options);
      await body(opened.page);
      opened.assertClean(...(expected ? [expected] : []));
      await opened.close();
    });
}

/** Opens a tab that collects errors, warnings, and requests to other hosts. */
export async function tab(browser, { width = 1280, height = 900, theme = "light" } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: "reduce",
    locale: "en-GB",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const messages = [];
  const host = new URL(URL_).hostname;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) messages.push(message.text());
  });
  page.on("pageerror", (error) => messages.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol !== "data:" && to.hostname !== host)
      messages.push(`request to ${request.url()}`);
  });
  return {
    page,
    close: () => context.close(),
    /** Fails on any message that no pattern matches. */
    assertClean: (...expected) => {
      const left = messages.filter((text) => !expected.some((pattern) => pattern.test(text)));
      assert.deepEqual(left, []);
    },
  };
}

/** Resizes the window, and waits until everything is redrawn. */
export async function resize(page, width) {
  await page.setViewportSize({ width, height: width < 500 ? 760 : 900 });
  // Resize observers run before the first frame and draw before the second.
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

export async function visit(page, name, url = URL_) {
  await page.goto(`${url}/#/${name}`);
  // A change after the # loads no new document.
  if (name !== "") await page.waitForSelector(PAGES[name] ?? "h1");
}

/** The kernel name of a volume that has decisions. */
export async function someVolume(page) {
  const response = await page.request.get(`${URL_}/api/v1/decisions?limit=1`);
  const { decisions } = await response.json();
  assert.ok(decisions.length > 0, "the history has decisions");
  return decisions[0].volume;
}

/** Requests a change without the page, to undo what a test changed. */
export async function requestChange(page, kind, volume, args) {
  const response = await page.request.post(`${URL_}/api/v1/intents`, {
    headers: { Authorization: `Bearer ${TOKEN}` },
    data: { kind, volume, args },
  });
  assert.equal(response.status(), 202);
}

/** Enters the token. */
export async function unlock(page) {
  await page.getByRole("button", { name: "Changes: locked" }).click();
  const dialog = page.getByRole("dialog", { name: "Token for changes" });
  await dialog.getByLabel("Token").fill(TOKEN);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
}

/**
 * Holds back the answers to requests for which `wanted` is true. `release` lets them go and waits
 * until the page has them. `change`: of the JSON of such an answer.
 */
export async function holdBack(page, pattern, wanted, change = (body) => body) {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const held = [];
  await page.route(pattern, async (route) => {
    if (!wanted(new URL(route.request().url()).searchParams)) return route.continue();
    held.push(route.request());
    const answer = await route.fetch();
    await released;
    return route.fulfill({
      response: answer,
      json: change(await answer.json()),
    });
  });
  return {
    held,
    release: async () => {
      release();
      for (const request of held) await (await request.response()).finished();
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
    },
  };
}

export async function lastIntent(page) {
  const response = await page.request.get(`${URL_}/api/v1/intents?limit=1`);
  return (await response.json()).intents[0];
}

/** All intents with a higher id, the oldest first. */
export async function intentsSince(page, number) {
  const response = await page.request.get(`${URL_}/api/v1/intents?limit=20`);
  const { intents } = await response.json();
  return intents.filter(({ id }) => id > number).reverse();
}

export async function openVolume(page, volume) {
  await page.goto(`${URL_}/#/volume/${encodeURIComponent(volume)}`);
  await page.waitForFunction(() => document.querySelector(".volume-status h1")?.textContent !== "");
  await page.waitForSelector(".lanes > *");
  await page.waitForSelector(".plot canvas");
}

/** Where parts of an element begin and end as drawn, as shares (0..1) of its width. */
export function shares(element, selector) {
  return element.evaluate((box, wanted) => {
    const whole = box.getBoundingClientRect();
    const share = (x) => Math.round(((x - whole.left) / whole.width) * 1e4) / 1e4;
    return [...box.querySelectorAll(wanted)].map((part) => {
      const { left, right } = part.getBoundingClientRect();
      return { left: share(left), right: share(right) };
    });
  }, selector);
}

export function shot(page, name) {
  return page.screenshot({
    path: join(ARTEFACTS, `${name}.png`),
    fullPage: true,
  });
}
