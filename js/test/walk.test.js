import assert from "node:assert/strict";
import { test } from "node:test";
import { levelsState, openByName } from "../src/states.js";
import { closedState } from "../src/visible.js";
import { step } from "../src/walk.js";
import { gpt2Document } from "./gpt2.js";
import { graphOf, indexOf, sceneOf } from "./scenes.js";

const graph = graphOf(gpt2Document(2));
const scene = sceneOf(graph, openByName(graph, levelsState(graph, 1, closedState().hide), "transformer.h.0"));

/** @type {(from: string | null, direction: "up"|"down"|"left"|"right") => string | null} */
function walk(from, direction) {
  const next = step(scene, from === null ? -1 : indexOf(scene, from), direction);
  return next < 0 ? null : scene.boxes[next].item.name;
}

test("from nowhere the walk starts at the top", () => {
  assert.equal(walk(null, "down"), "input_ids");
});

test("down and up follow the data", () => {
  assert.equal(walk("input_ids", "down"), "transformer.wte");
  assert.equal(walk("transformer.wte", "down"), "transformer.add");
  assert.equal(walk("transformer.wte", "up"), "input_ids");
});

test("the next layer comes before the skip connection", () => {
  assert.equal(walk("transformer.add", "down"), "transformer.h.0.ln_1");
  assert.equal(walk("transformer.h.0.add", "up"), "transformer.h.0.attn");
});

test("left goes out, right goes in", () => {
  assert.equal(walk("transformer.h.0.mlp", "left"), "transformer.h.0");
  assert.equal(walk("transformer.h.0", "left"), "transformer");
  assert.equal(walk("transformer", "left"), null);
  assert.equal(walk("transformer.h.0", "right"), "transformer.h.0.ln_1");
  assert.equal(walk("transformer.h.0.mlp", "right"), null);
});

test("an open module is left along the data of what it holds", () => {
  assert.equal(walk("transformer.h.0", "up"), "transformer.add");
  assert.equal(walk("transformer.h.0", "down"), "transformer.h.1");
});
