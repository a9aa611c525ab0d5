// SPDX-License-Identifier: GPL-2.0-only
// Measures the size of the first page, the time until it can be used, and the growth of its memory.
// Environment: as for harness.mjs, and EBBGATE_VOLUMES (how many volumes there are), EBBGATE_LOADS and
// EBBGATE_MINUTES. Prints one JSON object. The scenario `web-weight` of tests/bench runs it.
import * as harness from "./harness.mjs";

const VOLUMES = Number(process.env.EBBGATE_VOLUMES);
const LOADS = Number(process.env.EBBGATE_LOADS);
const MINUTES = Number(process.env.EBBGATE_MINUTES);
const DRAWN = ".volume-card, .volume-row";
const MIB = 1024 * 1024;

/** Times (ms after the request) and transferred bytes of one load in an empty profile. */
async function load(browser, debug) {
  const tab = await harness.tab(browser);
  const session = await tab.page.context().newCDPSession(tab.page);
  const kinds = new Map();
  const bytes = { page: 0, api: 0 };
  await session.send("Network.enable");
  session.on("Network.responseReceived", ({ requestId, response }) => {
    kinds.set(requestId, new URL(response.url).pathname.startsWith("/api/") ? "api" : "page");
  });
  session.on("Network.dataReceived", ({ requestId, encodedDataLength }) => {
    bytes[kinds.get(requestId) ?? "page"] += encodedDataLength;
  });
  const before = await cpuSeconds(debug);
  await tab.page.addInitScript(observe, { wanted: VOLUMES, drawn: DRAWN });
  await tab.page.goto(`${harness.URL_}/#/overview`);
  const ready = await tab.page.waitForFunction(() => globalThis.ebbgateReady);
  const cpu_ms = ((await cpuSeconds(debug)) - before) * 1000;
  const found = { interactive_ms: await ready.jsonValue(), cpu_ms, ...bytes };
  tab.assertClean();
  await tab.close();
  return found;
}

/** CPU time of all processes of the browser. */
async function cpuSeconds(debug) {
  const { processInfo } = await debug.send("SystemInfo.getProcessInfo");
  return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** Runs in the page: notes when all volumes are drawn and the page responds to input. */
function observe({ wanted, drawn }) {
  const look = new MutationObserver(() => {
    if (document.querySelectorAll(drawn).length < wanted) return;
    look.disconnect();
    // After the frame that paints them, when the event loop is idle.
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        setTimeout(() => {
          globalThis.ebbgateReady = performance.now();
        }, 0),
      ),
    );
  });
  look.observe(document, { childList: true, subtree: true });
}

/** MiB in use after a garbage collection, once a minute, of an open page without input. */
async function heap(browser) {
  const tab = await harness.tab(browser);
  const session = await tab.page.context().newCDPSession(tab.page);
  await harness.visit(tab.page, "overview");
  const found = [];
  for (let minute = 0; minute <= MINUTES; minute += 1) {
    if (minute > 0) await tab.page.waitForTimeout(60_000);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    found.push(usedSize / MIB);
    console.error(`minute ${minute}: ${found.at(-1).toFixed(2)} MiB`);
  }
  tab.assertClean();
  await tab.close();
  return found;
}

const browser = await harness.browse();
try {
  const debug = await browser.newBrowserCDPSession();
  const loads = [];
  for (let number = 0; number < LOADS; number += 1) loads.push(await load(browser, debug));
  console.log(JSON.stringify({ loads, heap_mib: MINUTES > 0 ? await heap(browser) : [] }));
} finally {
  await browser.close();
}
