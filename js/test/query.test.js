import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { findNames, parseQuery } from "../src/query.js";
import { decode } from "../src/schema.js";
import { gpt2Document } from "./gpt2.js";

/** @param {any} document @returns {import("../src/types.js").Graph} */
function graphOf(document) {
  const decoded = decode(document);
  assert.equal(decoded.status, "success");
  return /** @type {any} */ (decoded).graph;
}

const graph = graphOf(gpt2Document(2));
const find = (/** @type {string} */ query) => findNames(graph, query);

test("a query is split into terms", () => {
  assert.deepEqual(parseQuery('op:softmax -in:"h. 3" Attn encoder.layer:2 foo:bar - type: '), [
    { field: "op", value: "softmax", isNegated: false },
    { field: "in", value: "h. 3", isNegated: true },
    { field: null, value: "attn", isNegated: false },
    { field: null, value: "encoder.layer:2", isNegated: false },
    { field: null, value: "foo:bar", isNegated: false },
  ]);
  assert.deepEqual(parseQuery(' - -"" in: " '), []);
});

test("free words look into names, classes and operations", () => {
  assert.deepEqual(find("ln_f"), ["transformer.ln_f", "transformer.ln_f.layer_norm"]);
  assert.deepEqual(find("gelu -kind:op"), ["transformer.h.0.mlp.act", "transformer.h.1.mlp.act"]);
  assert.deepEqual(find("gpt2b*"), ["transformer.h.0", "transformer.h.1"]);
  assert.deepEqual(find(""), []);
  assert.deepEqual(find("-x"), find("kind:*"));
});

test("fields narrow down", () => {
  assert.deepEqual(find("op:GELU in:h.1"), ["transformer.h.1.mlp.act.gelu"]);
  assert.deepEqual(find("type:conv1d in:h.0.mlp"), ["transformer.h.0.mlp.c_fc", "transformer.h.0.mlp.c_proj"]);
  assert.deepEqual(find("kind:input"), ["input_ids"]);
  assert.deepEqual(find("kind:module type:embedding"), ["transformer.wte", "transformer.wpe"]);
  assert.deepEqual(find("name:transformer.w?e"), ["transformer.wte", "transformer.wpe"]);
  assert.deepEqual(find("status:failed"), []);
});

test("dtypes and shapes are those of outputs", () => {
  assert.deepEqual(find("dtype:i64"), ["input_ids", "transformer.arange"]);
  assert.deepEqual(find("dtype:int64"), find("dtype:i64"));
  assert.deepEqual(find("shape:1,128,2304 kind:op"), [
    "transformer.h.0.attn.c_attn.addmm",
    "transformer.h.1.attn.c_attn.addmm",
  ]);
  assert.deepEqual(find("shape:1x128×2304 kind:op"), find("shape:1,128,2304 kind:op"));
  assert.ok(find("shape:*,768").includes("transformer.wte"));
  assert.ok(!find("shape:*,768").includes("input_ids"));
});

test("inside means inside: not the call itself, not one whose name only starts alike", () => {
  const many = graphOf(gpt2Document(12));
  const found = findNames(many, "in:h.1");
  assert.ok(found.includes("transformer.h.1.attn"));
  assert.ok(!found.includes("transformer.h.1"));
  assert.ok(!found.some((name) => name.startsWith("transformer.h.11")));
});

test("after a crash the failed are found", () => {
  const crashed = graphOf(gpt2Document(3, { failsIn: 1 }));
  assert.deepEqual(findNames(crashed, "status:failed kind:op"), ["transformer.h.1.attn.scaled_dot_product_attention"]);
});

test("brackets in names are no globs", () => {
  const document = gpt2Document(1);
  document.nodes[0].name = "batch.images[0]";
  assert.deepEqual(findNames(graphOf(document), "name:batch.images[0]"), ["batch.images[0]"]);
});

test("queries find what Python finds", () => {
  const path = new URL("../../tests/queries.json", import.meta.url);
  assert.ok(existsSync(path));
  for (const { document, query, names } of JSON.parse(readFileSync(path, "utf8"))) {
    const text = readFileSync(new URL(`documents/${document}`, path), "utf8");
    assert.deepEqual(findNames(graphOf(JSON.parse(text)), query), names, `${query} in ${document}`);
  }
});
