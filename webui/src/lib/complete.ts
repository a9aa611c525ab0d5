// SPDX-License-Identifier: GPL-2.0-only
// Completion of a policy from its JSON Schema. Pure.
import { placeAt } from "./yamlplace";

/** The part of JSON Schema that the policy schema uses. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  description?: string;
}

export interface Item {
  label: string;
  /** Replaces the typed word. */
  insert: string;
  about: string;
}

export interface Completion {
  from: number;
  items: Item[];
  /** Describes what belongs here; empty without a description in the schema. */
  about: string;
}

const NOTHING: Completion = { from: 0, items: [], about: "" };

export function complete(text: string, offset: number, schema: Schema): Completion {
  const place = placeAt(text, offset);
  if (!place) return { ...NOTHING, from: offset };
  const found = place.path.reduce(
    (schemas, step) => schemas.flatMap((each) => children(each, step, schema)),
    alternatives(schema, schema),
  );
  const entries = place.value ? found.flatMap((each) => elements(each, schema)) : found;
  const items = place.value
    ? entries.flatMap(values)
    : [...found.flatMap(values), ...found.flatMap(keys)];
  return {
    from: place.from,
    items: ranked(items, place.word),
    // A description of the whole document would not help here.
    about:
      place.path.length === 0 ? "" : (found.find((each) => each.description)?.description ?? ""),
  };
}

/** The schema and its `anyOf` alternatives, with references resolved. */
function alternatives(schema: Schema, root: Schema, depth = 0): Schema[] {
  if (depth > 8) return [];
  const target = schema.$ref?.startsWith("#/$defs/")
    ? root.$defs?.[schema.$ref.slice("#/$defs/".length)]
    : undefined;
  const own = target ? [{ ...target, ...described(schema) }] : [schema];
  return own.flatMap((each) => [
    each,
    ...(each.anyOf ?? []).flatMap((other) => alternatives(other, root, depth + 1)),
  ]);
}

function described(schema: Schema): Schema {
  return schema.description === undefined ? {} : { description: schema.description };
}

function children(schema: Schema, step: string, root: Schema): Schema[] {
  const child = step === "[]" ? schema.items : schema.properties?.[step];
  return child ? alternatives(child, root) : [];
}

/** After a colon, an entry may stand for a list. */
function elements(schema: Schema, root: Schema): Schema[] {
  return schema.items ? [schema, ...alternatives(schema.items, root)] : [schema];
}

function values(schema: Schema): Item[] {
  const known = [...(schema.enum ?? []), ...("const" in schema ? [schema.const] : [])];
  return known
    .filter((value) => ["string", "number"].includes(typeof value))
    .map((value) => ({
      label: String(value),
      insert: String(value),
      about: schema.description ?? "",
    }));
}

function keys(schema: Schema): Item[] {
  return Object.entries(schema.properties ?? {}).map(([key, value]) => ({
    label: key,
    insert: `${key}: `,
    about: value.description ?? "",
  }));
}

/** Items that start with the word, then items that contain it; without duplicates and the word itself. */
function ranked(items: readonly Item[], word: string): Item[] {
  const wanted = word.toLowerCase();
  const once = new Map<string, Item>();
  for (const item of items) {
    const label = item.label.toLowerCase();
    if (label.includes(wanted) && item.insert !== word && !once.has(item.insert)) {
      once.set(item.insert, item);
    }
  }
  const score = (item: Item): number => (item.label.toLowerCase().startsWith(wanted) ? 0 : 1);
  return [...once.values()].sort((a, b) => score(a) - score(b));
}
