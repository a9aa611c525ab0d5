// SPDX-License-Identifier: GPL-2.0-only
// Bundles the dashboard into ../build/webui. `--test` bundles and runs the tests of src/lib instead;
// `--watch` rebuilds at every change.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import * as esbuild from "esbuild";

const OUT = "../build/webui";
const TEST_OUT = "../build/webui-test";
// index.html names everything that a page loads.
const PAGE_BYTES_MAX = 200 * 1024;
const shared = { bundle: true, format: "esm", target: "es2022", logLevel: "warning" };

async function build(watch) {
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  const options = {
    ...shared,
    entryPoints: ["src/app.ts", "src/app.css"],
    outdir: OUT,
    minify: true,
    legalComments: "eof",
  };
  for (const name of ["index.html", "favicon.svg"]) copyFileSync(`src/${name}`, `${OUT}/${name}`);
  if (watch) {
    await (await esbuild.context(options)).watch();
    return;
  }
  await esbuild.build(options);
  weigh();
}

function weigh() {
  const sizes = readdirSync(OUT).map((name) => [name, statSync(join(OUT, name)).size]);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  for (const [name, size] of sizes)
    console.log(`${(size / 1024).toFixed(1).padStart(7)} KiB  ${name}`);
  console.log(`${(total / 1024).toFixed(1).padStart(7)} KiB  in all, as it goes over the wire`);
  if (total > PAGE_BYTES_MAX) {
    console.error(`more than ${PAGE_BYTES_MAX / 1024} KiB: something got in that should not have`);
    process.exitCode = 1;
  }
}

async function test() {
  rmSync(TEST_OUT, { recursive: true, force: true });
  const entryPoints = readdirSync("src/lib")
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `src/lib/${name}`);
  await esbuild.build({
    ...shared,
    entryPoints,
    outdir: TEST_OUT,
    outExtension: { ".js": ".mjs" },
    platform: "node",
    sourcemap: "inline",
  });
  const files = entryPoints.map((path) => `${TEST_OUT}/${basename(path, ".ts")}.mjs`);
  const ran = spawnSync(
    process.execPath,
    ["--enable-source-maps", "--test", "--test-reporter=dot", ...files],
    {
      stdio: "inherit",
    },
  );
  process.exitCode = ran.status ?? 1;
}

if (process.argv.includes("--test")) await test();
else await build(process.argv.includes("--watch"));
