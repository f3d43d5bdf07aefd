import assert from "node:assert/strict";
import { test } from "node:test";
import { closeById, levelsState, openByName, openLevels, standInFinder, startState, toggle } from "../src/states.js";
import { closedState, indexGraph, visibleGraph } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { documentNamed, graphOf } from "./scenes.js";

const graph = graphOf(gpt2Document(12));
const { hide } = closedState();
const none = { depth: null, opened: null, commands: [], selected: [], showConstants: null, foldRepeats: null };

/** @type {(state: import("../src/visible.js").State, of?: import("../src/types.js").Graph) => string[]} */
const names = (state, of = graph) => visibleGraph(of, state).items.map((item) => item.name);
/** @type {(state: import("../src/visible.js").State, name: string) => import("../src/types.js").Item} */
const itemNamed = (state, name) =>
  /** @type {any} */ (visibleGraph(graph, state).items.find((item) => item.name === name));

test("levels count the modules that are open inside one another", () => {
  assert.deepEqual(names(levelsState(graph, 0, hide)), ["input_ids", "transformer", "lm_head", "output.logits"]);
  assert.ok(names(levelsState(graph, 1, hide)).includes("transformer.h.0"));
  assert.ok(names(levelsState(graph, 2, hide)).includes("transformer.h.0.attn"));
  assert.deepEqual(openLevels(visibleGraph(graph, levelsState(graph, 2, hide)).items).deepest, 2);
  assert.deepEqual(openLevels(visibleGraph(graph, levelsState(graph, 0, hide)).items), { deepest: 0, shallowest: 0 });
});

test("the options say what is open at the start", () => {
  assert.deepEqual(names(startState(graph, { ...none, depth: 0 })), names(levelsState(graph, 0, hide)));
  const opened = names(startState(graph, { ...none, opened: ["transformer.h.3.mlp"] }));
  assert.ok(opened.includes("transformer.h.3.mlp.c_fc") && !opened.includes("transformer.h.4.mlp"));
  assert.ok(names(startState(graph, { ...none, depth: 1, foldRepeats: false })).includes("transformer.h.11"));
  assert.ok(!names(startState(graph, { ...none, depth: 1, foldRepeats: true })).includes("transformer.h.11"));
  assert.ok(names(startState(graph, { ...none, depth: 1, showConstants: true })).includes("transformer.mask"));
  assert.ok(!names(startState(graph, { ...none, depth: 1, showConstants: false })).includes("transformer.mask"));
  assert.ok(
    names(startState(graph, { ...none, depth: 0, selected: ["transformer.h.5.attn"] })).includes(
      "transformer.h.5.attn",
    ),
  );
});

test("a failed pass starts with the failure in sight", () => {
  const crashed = graphOf(documentNamed("crash"));
  const failed = crashed.nodes[/** @type {number} */ (crashed.error?.node)].name;
  assert.ok(names(startState(crashed, { ...none, depth: 0 }), crashed).includes(failed));
});

test("opening a folded repeat and closing it again leaves no trace", () => {
  const start = levelsState(graph, 1, hide);
  const repeat = itemNamed(start, "transformer.h.0");
  assert.equal(repeat.kind, "repeat");
  const open = toggle(graph, start, repeat, false);
  assert.ok(names(open).includes("transformer.h.0.attn"));
  const closed = toggle(graph, open, itemNamed(open, "transformer.h.0"), false);
  assert.deepEqual(names(closed), names(start));
});

test("a repeat can be unfolded as a whole", () => {
  const start = levelsState(graph, 1, hide);
  const all = toggle(graph, start, itemNamed(start, "transformer.h.0"), true);
  assert.equal(names(all).filter((name) => /^transformer\.h\.\d+$/.test(name)).length, 12);
  const one = openByName(graph, all, "transformer.h.4");
  const id = /** @type {number} */ (indexGraph(graph).callByName.get("transformer.h.4"));
  assert.deepEqual(names(closeById(graph, one, id)), names(all));
});

test("what can't be opened stays as it is", () => {
  const start = levelsState(graph, 1, hide);
  assert.equal(toggle(graph, start, itemNamed(start, "input_ids"), false), start);
  assert.equal(openByName(graph, start, "no such module"), start);
});

test("closed boxes stand in for what is inside them", () => {
  const { items } = visibleGraph(graph, levelsState(graph, 1, hide));
  const standIn = standInFinder(graph, items);
  const nameOf = (/** @type {string} */ name) => items[standIn(name)]?.name;
  assert.equal(nameOf("transformer.wte"), "transformer.wte");
  assert.equal(nameOf("transformer.wte.embedding"), "transformer.wte");
  assert.equal(nameOf("transformer.h.7.attn.split"), "transformer.h.0");
  assert.equal(nameOf("transformer.mask"), undefined);
  assert.equal(nameOf("no such node"), undefined);
});
