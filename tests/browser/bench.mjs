// SPDX-License-Identifier: GPL-2.0-only
// A real browser with an empty profile, and what it complains of. From the environment:
// EBBGATE_URL, EBBGATE_TOKEN   a server with volumes, and what it takes for changes
// EBBGATE_MANY_URL             one with many volumes and no daemon (optional)
// EBBGATE_EMPTY_URL            one without any history (optional)
// EBBGATE_CLOSED_URL           one that shows nothing without the token (optional)
// EBBGATE_ARTEFACTS            where screenshots go; EBBGATE_CHROMIUM: which browser
// EBBGATE_PATIENCE_MS          how long anything may take (optional)
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const URL_ = need("EBBGATE_URL").replace(/\/$/, "");
export const TOKEN = need("EBBGATE_TOKEN");
export const MANY_URL = process.env.EBBGATE_MANY_URL;
export const EMPTY_URL = process.env.EBBGATE_EMPTY_URL;
export const CLOSED_URL = process.env.EBBGATE_CLOSED_URL;
export const ARTEFACTS = need("EBBGATE_ARTEFACTS");
// On a slow machine nothing is quick.
export const PATIENCE_MS = Number(process.env.EBBGATE_PATIENCE_MS ?? 30_000);

/** Each page with what is there once it is drawn. */
export const PAGES = {
  overview: ".volume-card, .volume-row, .empty h2",
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

/** A tab that keeps what it complains of. `allowed`: patterns of what a test provokes itself. */
export async function tab(browser, { width = 1280, height = 900, theme = "light" } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: "reduce",
    locale: "en-GB",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints = [];
  const host = new URL(URL_).hostname;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol !== "data:" && to.hostname !== host) complaints.push(`asks ${request.url()}`);
  });
  return {
    page,
    close: () => context.close(),
    /** Fails on any complaint but those that match. */
    quiet: (...allowed) => {
      const left = complaints.filter((text) => !allowed.some((pattern) => pattern.test(text)));
      assert.deepEqual(left, []);
    },
  };
}

/** Another width of the window, with the height that goes with it; once everything is drawn anew. */
export async function resize(page, width) {
  await page.setViewportSize({ width, height: width < 500 ? 760 : 900 });
  // What is drawn by size is told of it before the first frame, and draws before the second.
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
}

export async function visit(page, name, url = URL_) {
  await page.goto(`${url}/#/${name}`);
  // Another address behind the # is no new document.
  if (name !== "") await page.waitForSelector(PAGES[name] ?? "h1");
}

/** The kernel name of a volume of which there are decisions. */
export async function someVolume(page) {
  const response = await page.request.get(`${URL_}/api/v1/decisions?limit=1`);
  const { decisions } = await response.json();
  assert.ok(decisions.length > 0, "the history has decisions");
  return decisions[0].volume;
}

/** Asks for something beside the page: what a test changed goes back. */
export async function ask(page, kind, volume, args) {
  const response = await page.request.post(`${URL_}/api/v1/intents`, {
    headers: { Authorization: `Bearer ${TOKEN}` },
    data: { kind, volume, args },
  });
  assert.equal(response.status(), 202);
}

export async function openVolume(page, volume) {
  await page.goto(`${URL_}/#/volume/${encodeURIComponent(volume)}`);
  await page.waitForFunction(() => document.querySelector(".volume-status h1")?.textContent !== "");
  await page.waitForSelector(".lanes > *");
  await page.waitForSelector(".plot canvas");
}

export function shot(page, name) {
  return page.screenshot({
    path: join(ARTEFACTS, `${name}.png`),
    fullPage: true,
  });
}
