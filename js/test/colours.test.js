import assert from "node:assert/strict";
import { test } from "node:test";
import { colourModes, colouring } from "../src/colours.js";
import { PALETTES } from "../src/theme.js";
import { levelsState } from "../src/states.js";
import { closedState, visibleGraph } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { graphOf } from "./scenes.js";

const graph = graphOf(gpt2Document(3));
const { items } = visibleGraph(graph, levelsState(graph, 2, closedState().hide));
const itemNamed = (/** @type {string} */ name) => /** @type {any} */ (items.find((item) => item.name === name));
const palette = PALETTES.light;

test("modes are those that the document has numbers for", () => {
  assert.deepEqual(
    colourModes(graph, false).map(({ id }) => id),
    ["type", "dtype", "depth", "metric:flops", "metric:parameters", "metric:size_bytes"],
  );
  assert.equal(colourModes(graph, true).at(-1)?.id, "numbers");
});

test("dtypes have a colour each, and the legend names those in sight", () => {
  const { colourOf, legend } = colouring(graph, "dtype", palette, {}, items);
  assert.notEqual(colourOf(itemNamed("input_ids")), colourOf(itemNamed("transformer.wte")));
  assert.deepEqual(legend.map(({ label }) => label).sort(), ["float32", "int64"]);
});

test("a metric goes from little to much; a box without it has no colour", () => {
  const { colourOf, legend, isRamp } = colouring(graph, "metric:parameters", palette, {}, items);
  assert.ok(isRamp);
  assert.equal(colourOf(itemNamed("transformer")), palette.ramp.at(-1));
  assert.equal(colourOf(itemNamed("transformer.h.0.ln_1")), palette.ramp[0]);
  assert.equal(colourOf(itemNamed("transformer.add")), null);
  assert.equal(legend.length, palette.ramp.length);
  assert.equal(legend.at(-1)?.label, "124 M");
});

test("a folded repeat counts all of its members", () => {
  const folded = visibleGraph(graph, levelsState(graph, 1, closedState().hide)).items;
  const repeat = /** @type {any} */ (folded.find((item) => item.kind === "repeat"));
  const { legend } = colouring(graph, "metric:flops", palette, {}, [repeat]);
  assert.equal(legend[0].label, "5.7 GFLOPs");
});

test("numbers from Python colour what they name", () => {
  const { colourOf } = colouring(graph, "numbers", palette, { "transformer.wte": 1, "transformer.wpe": 3 }, items);
  assert.equal(colourOf(itemNamed("transformer.wte")), palette.ramp[0]);
  assert.equal(colourOf(itemNamed("transformer.wpe")), palette.ramp.at(-1));
  assert.equal(colourOf(itemNamed("transformer.add")), null);
});

test("without numbers there is no legend", () => {
  assert.deepEqual(colouring(graph, "numbers", palette, {}, items).legend, []);
});
