import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { SCHEMA_VERSION, decode } from "../src/schema.js";
import { cellLoop, gpt2, nest } from "./synthetic.js";

const root = new URL("../../", import.meta.url);
const documents = new URL("tests/documents/", root);
const schema = JSON.parse(readFileSync(new URL("python/torchatlas/schema.json", root), "utf8"));
const names = readdirSync(documents).filter((name) => name.endsWith(".json"));

/** @param {string} name */
const read = (name) => JSON.parse(readFileSync(new URL(name, documents), "utf8"));

test("documents that Python wrote obey the schema and can be decoded", () => {
  const validate = new Ajv2020({ strict: false }).compile(schema);
  assert.ok(names.length > 0);
  for (const name of names) {
    const document = read(name);
    assert.ok(validate(document), `${name}: ${JSON.stringify(validate.errors)}`);
    assert.equal(decode(document).status, "success", name);
  }
});

test("synthetic documents obey the schema", () => {
  const validate = new Ajv2020({ strict: false }).compile(schema);
  for (const document of [gpt2(2), cellLoop(3), nest(5)])
    assert.ok(validate(document), JSON.stringify(validate.errors));
});

test("the version read here is the one of the schema", () => {
  assert.equal(schema.properties.schema_version.const, SCHEMA_VERSION);
});

test("decoding renames, numbers and keeps", () => {
  const result = decode(gpt2(1));
  assert.ok(result.status === "success");
  const { graph } = result;
  assert.equal(graph.calls[1].name, "transformer");
  assert.equal(graph.calls[1].id, 1);
  assert.equal(graph.nodes[0].id, 0);
  // One batch of 128 token ids, eight bytes each.
  assert.deepEqual(graph.specs[0], {
    shape: [1, 128],
    dtype: "int64",
    device: "cpu",
    requiresGrad: false,
    sizeBytes: 1024,
  });
  assert.deepEqual(Object.keys(graph.edges[0]), ["tail", "head", "tailSlot", "slot", "spec"]);
});

test("an unknown version is refused, naming both versions", () => {
  const result = decode({ ...gpt2(1), schema_version: 99 });
  assert.ok(result.status === "failure");
  assert.match(result.errors[0], /99/);
  assert.match(result.errors[0], new RegExp(`version ${SCHEMA_VERSION}`));
});

test("what is no document is refused", () => {
  for (const value of [null, 3, "text", [], {}, { schema_version: SCHEMA_VERSION }]) {
    assert.equal(decode(value).status, "failure", JSON.stringify(value));
  }
});

test("references that lead nowhere are refused and named", () => {
  const document = gpt2(1);
  document.edges[0][1] = 10_000;
  document.nodes[1].call = -1;
  const result = decode(document);
  assert.ok(result.status === "failure");
  assert.equal(result.errors.length, 2);
  assert.match(result.errors.join(), /edges\[0\]: unknown node 10000/);
});

test("a call that comes before its caller is refused", () => {
  const document = gpt2(1);
  document.calls[1].parent = 3;
  assert.equal(decode(document).status, "failure");
});
