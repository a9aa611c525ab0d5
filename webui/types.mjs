// SPDX-License-Identifier: GPL-2.0-only
// Writes src/api/schema.ts from openapi.json; `--check` fails if the two differ.
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const TARGET = "src/api/schema.ts";
const HEAD = `// SPDX-License-Identifier: GPL-2.0-only
// Printed from openapi.json by \`npm run types\`; never edited by hand.
`;

const source = new URL("openapi.json", import.meta.url);
const text = HEAD + astToString(await openapiTS(source));
if (!process.argv.includes("--check")) {
  writeFileSync(TARGET, text);
} else if (readFileSync(TARGET, "utf8") !== text) {
  console.error(`${TARGET} is not what openapi.json says: npm run types`);
  process.exit(1);
}
