// SPDX-License-Identifier: GPL-2.0-only
// What the first page weighs, how soon it can be used, and how its memory grows while it is open.
// From the environment what bench.mjs takes, EBBGATE_VOLUMES (how many there are), EBBGATE_LOADS
// and EBBGATE_MINUTES. Prints one JSON object. `web-weight` of tests/bench runs it.
import * as bench from "./bench.mjs";

const VOLUMES = Number(process.env.EBBGATE_VOLUMES);
const LOADS = Number(process.env.EBBGATE_LOADS);
const MINUTES = Number(process.env.EBBGATE_MINUTES);
const DRAWN = ".volume-card, .volume-row";
const MIB = 1024 * 1024;

/** Times of one load in an empty profile, ms after it was asked for; bytes as they come. */
async function load(browser, debug) {
  const tab = await bench.tab(browser);
  const session = await tab.page.context().newCDPSession(tab.page);
  const kinds = new Map();
  const bytes = { page: 0, api: 0 };
  await session.send("Network.enable");
  session.on("Network.responseReceived", ({ requestId, response }) => {
    kinds.set(
      requestId,
      new URL(response.url).pathname.startsWith("/api/") ? "api" : "page",
    );
  });
  session.on("Network.dataReceived", ({ requestId, encodedDataLength }) => {
    bytes[kinds.get(requestId) ?? "page"] += encodedDataLength;
  });
  const before = await cpuSeconds(debug);
  await tab.page.addInitScript(observe, { wanted: VOLUMES, drawn: DRAWN });
  await tab.page.goto(`${bench.URL_}/#/overview`);
  const ready = await tab.page.waitForFunction(() => globalThis.ebbgateReady);
  const cpu_ms = ((await cpuSeconds(debug)) - before) * 1000;
  const found = { interactive_ms: await ready.jsonValue(), cpu_ms, ...bytes };
  tab.quiet();
  await tab.close();
  return found;
}

/** What all processes of the browser have spent. */
async function cpuSeconds(debug) {
  const { processInfo } = await debug.send("SystemInfo.getProcessInfo");
  return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}

/** In the page: when all volumes are drawn and a press of a key would be answered at once. */
function observe({ wanted, drawn }) {
  const look = new MutationObserver(() => {
    if (document.querySelectorAll(drawn).length < wanted) return;
    look.disconnect();
    // After the frame in which they are painted, once nothing else is to be done.
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

/** MiB in use after a collection, once a minute, of a page that is only looked at. */
async function heap(browser) {
  const tab = await bench.tab(browser);
  const session = await tab.page.context().newCDPSession(tab.page);
  await bench.visit(tab.page, "overview");
  const found = [];
  for (let minute = 0; minute <= MINUTES; minute += 1) {
    if (minute > 0) await tab.page.waitForTimeout(60_000);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    found.push(usedSize / MIB);
    console.error(`minute ${minute}: ${found.at(-1).toFixed(2)} MiB`);
  }
  tab.quiet();
  await tab.close();
  return found;
}

const browser = await bench.browse();
try {
  const debug = await browser.newBrowserCDPSession();
  const loads = [];
  for (let number = 0; number < LOADS; number += 1)
    loads.push(await load(browser, debug));
  console.log(
    JSON.stringify({ loads, heap_mib: MINUTES > 0 ? await heap(browser) : [] }),
  );
} finally {
  await browser.close();
}
