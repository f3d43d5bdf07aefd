import assert from "node:assert/strict";
import { test } from "node:test";
import {
  allOpen,
  closeState,
  closedState,
  depthState,
  foldState,
  indexGraph,
  initialState,
  openState,
  revealState,
  unfoldState,
  visibleGraph,
} from "../src/visible.js";
import { DocumentBuilder, cellLoop, chain, gpt2, graphOf, nest, resnet, unet } from "./synthetic.js";

/** @typedef {import("../src/types.js").VisibleGraph} VisibleGraph */

/** @param {VisibleGraph} visible @returns {string[]} */
const namesOf = (visible) => visible.items.map((item) => item.name);

/** @param {VisibleGraph} visible @param {string} name */
function itemOf(visible, name) {
  const item = visible.items.find((candidate) => candidate.name === name);
  assert.ok(item, `${name} is not visible`);
  return item;
}

/** @param {VisibleGraph} visible @returns {string[]} */
const linksOf = ({ items, links }) => links.map((link) => `${items[link.tail].name} > ${items[link.head].name}`);

test("closed, a model shows what its outermost call holds", () => {
  const visible = visibleGraph(graphOf(gpt2(12)), closedState());
  assert.deepEqual(namesOf(visible), ["input_ids", "transformer", "lm_head", "output.logits"]);
  assert.deepEqual(linksOf(visible), ["input_ids > transformer", "transformer > lm_head", "lm_head > output.logits"]);
  assert.ok(itemOf(visible, "transformer").isOpenable);
});

test("equal blocks fold to one repeat, each with one tensor in and out", () => {
  const graph = graphOf(gpt2(12));
  const visible = visibleGraph(graph, depthState(graph, 2));
  const folded = visible.items.filter((item) => item.kind === "repeat");
  assert.equal(folded.length, 1);
  assert.equal(folded[0].members.length, 12);
  assert.equal(folded[0].name, "transformer.h.0");
  const place = visible.items.indexOf(folded[0]);
  assert.equal(visible.links.filter((link) => link.head === place).length, 1);
  assert.equal(visible.links.filter((link) => link.tail === place).length, 1);
});

test("deeper, a repeat shows one open representative and the rest folded", () => {
  const graph = graphOf(gpt2(12));
  const visible = visibleGraph(graph, depthState(graph, 3));
  assert.ok(itemOf(visible, "transformer.h.0").isOpen);
  assert.deepEqual(itemOf(visible, "transformer.h.1").members.length, 11);
  assert.ok(namesOf(visible).includes("transformer.h.0.attn"));
  assert.ok(!namesOf(visible).includes("transformer.h.2"));
});

test("a repeat unfolds to one, to a range and to all, and folds again", () => {
  const graph = graphOf(gpt2(6));
  const start = depthState(graph, 2);
  const repeat = itemOf(visibleGraph(graph, start), "transformer.h.0");
  const shown = (/** @type {import("../src/visible.js").State} */ state) =>
    visibleGraph(graph, state)
      .items.filter((item) => item.name.startsWith("transformer.h."))
      .map((item) => `${item.name.slice(12)} ${item.kind} ${item.members.length}`);
  assert.deepEqual(shown(unfoldState(graph, start, repeat, "one")), ["h.0 call 0", "h.1 repeat 5"]);
  const range = unfoldState(graph, start, repeat, { from: 2, to: 4 });
  assert.deepEqual(shown(range), ["h.0 repeat 2", "h.2 call 0", "h.3 call 0", "h.4 repeat 2"]);
  const all = unfoldState(graph, start, repeat, "all");
  assert.equal(shown(all).length, 6);
  assert.deepEqual(shown(foldState(graph, all, repeat.members[3])), ["h.0 repeat 6"]);
  assert.deepEqual(shown(start), ["h.0 repeat 6"], "the first state is unchanged");
});

test("query, key and value look alike but are not a repetition", () => {
  const b = new DocumentBuilder("Attention");
  const x = b.input("x", [1, 4, 8]);
  const parts = ["query", "key", "value"].map((name) => b.linear(name, x, 8));
  b.output("output", b.op("scaled_dot_product_attention", parts));
  const visible = visibleGraph(graphOf(b.build()), closedState());
  assert.deepEqual(namesOf(visible).slice(1, 4), ["query", "key", "value"]);
});

test("blocks of different width don't fold together", () => {
  const graph = graphOf(resnet([3, 4, 6, 3]));
  const visible = visibleGraph(graph, depthState(graph, 2));
  const folded = visible.items.filter((item) => item.kind === "repeat").map((item) => item.members.length);
  // The first block of each stage but the first has a downsample branch.
  assert.deepEqual(folded, [3, 3, 5, 2]);
});

test("a module called in a loop folds with what runs between its calls", () => {
  const graph = graphOf(cellLoop(10));
  const visible = visibleGraph(graph, closedState());
  assert.deepEqual(namesOf(visible), ["x", "h", "cell", "stack", "output"]);
  assert.equal(itemOf(visible, "cell").members.length, 10);
  const unfolded = visibleGraph(graph, unfoldState(graph, closedState(), itemOf(visible, "cell"), "one"));
  assert.deepEqual(namesOf(unfolded), ["x", "h", "getitem", "cell", "cell:2", "stack", "output"]);
});

test("links are merged per tensor and keep parallel tensors apart", () => {
  const b = new DocumentBuilder("Parallel");
  const x = b.input("x", [4]);
  const [one, two] = b.call("split", "Split", () => [b.op("relu", [x]), b.op("sigmoid", [x])]);
  b.output(
    "output",
    b.call("join", "Join", () => b.op("add", [b.op("mul", [one, one]), b.op("mul", [one, two])])),
  );
  const visible = visibleGraph(graphOf(b.build()), closedState());
  assert.deepEqual(linksOf(visible), ["x > split", "split > join", "split > join", "join > output"]);
  assert.deepEqual(visible.links[1].slots, ["0", "1", "0"], "the first tensor is read three times");
});

test("what filters hide is counted, and looked through where only the shape changes", () => {
  const graph = graphOf(gpt2(2));
  const open = allOpen(graph);
  const plain = visibleGraph(graph, open);
  const without = visibleGraph(graph, { ...open, hide: { ...open.hide, shapeOnly: true } });
  const names = namesOf(without);
  assert.ok(!names.some((name) => /view|transpose|reshape/.test(name)));
  // Per block: three views, four transposes, one reshape.
  assert.equal(plain.hidden.shapeOnly, 16);
  assert.equal(plain.items.length - without.items.length, 16);
  const attention = "transformer.h.0.attn";
  const direct = linksOf(without).filter((link) => link.includes(`${attention}.split > `));
  assert.deepEqual(direct, new Array(3).fill(`${attention}.split > ${attention}.scaled_dot_product_attention`));
});

test("parameters appear when their filter is off", () => {
  const graph = graphOf(gpt2(1));
  const state = allOpen(graph, { constants: false, parameters: false, shapeOnly: false, dead: false });
  const visible = visibleGraph(graph, state);
  assert.ok(linksOf(visible).includes("lm_head.weight > lm_head.linear"));
  assert.equal(visible.hidden.parameters, graph.nodes.filter((node) => node.kind === "parameter").length);
});

test("dead branches can be hidden", () => {
  const b = new DocumentBuilder("Dead");
  const x = b.input("x", [4]);
  b.call("unused", "Unused", () => b.op("tanh", [b.op("exp", [x])]));
  b.output("output", b.op("relu", [x]));
  const graph = graphOf(b.build());
  const state = closedState();
  assert.deepEqual(namesOf(visibleGraph(graph, state)), ["x", "unused", "relu", "output"]);
  assert.equal(visibleGraph(graph, state).hidden.dead, 2);
  const hidden = visibleGraph(graph, { ...state, hide: { ...state.hide, dead: true } });
  assert.deepEqual(namesOf(hidden), ["x", "relu", "output"]);
});

test("opening and closing change only the call asked for", () => {
  const graph = graphOf(gpt2(3));
  const start = depthState(graph, 2);
  const repeat = itemOf(visibleGraph(graph, start), "transformer.h.0");
  const opened = openState(graph, start, repeat);
  const visible = visibleGraph(graph, opened);
  assert.ok(itemOf(visible, "transformer.h.0").isOpen);
  assert.equal(itemOf(visible, "transformer.h.1").members.length, 2);
  const closed = visibleGraph(graph, closeState(graph, opened, itemOf(visible, "transformer.h.0")));
  assert.equal(itemOf(closed, "transformer.h.0").kind, "call", "what was clicked stays where it was");
});

test("revealing a name opens and unfolds the way to it", () => {
  const graph = graphOf(gpt2(12));
  for (const name of ["transformer.h.7.mlp.act.tanh", "transformer.h.7.attn", "lm_head.weight"]) {
    assert.ok(namesOf(visibleGraph(graph, revealState(graph, closedState(), name))).includes(name), name);
  }
  assert.deepEqual(revealState(graph, closedState(), "no.such.name"), closedState());
});

test("revealing an operation between the calls of a loop unfolds its step", () => {
  const graph = graphOf(cellLoop(10));
  const name = graph.nodes.filter((node) => node.op === "getitem")[4].name;
  assert.ok(namesOf(visibleGraph(graph, revealState(graph, closedState(), name))).includes(name));
});

test("parents come before children, and every link joins two leaves", () => {
  for (const document of [gpt2(3), resnet([2, 2]), unet(3), cellLoop(4)]) {
    const graph = graphOf(document);
    for (const state of [closedState(), initialState(graph), allOpen(graph)]) {
      const { items, links } = visibleGraph(graph, state);
      items.forEach((item, at) => assert.ok(item.parent === null || item.parent < at));
      assert.equal(new Set(items.map((item) => item.name)).size, items.length);
      for (const { tail, head } of links) assert.ok(!items[tail].isOpen && !items[head].isOpen);
    }
  }
});

test("all open shows every operation once", () => {
  const graph = graphOf(gpt2(4));
  const visible = visibleGraph(graph, allOpen(graph));
  const shown = visible.items.filter((item) => item.kind === "node").map((item) => item.id);
  const operations = graph.nodes.filter((node) => node.kind !== "parameter").map((node) => node.id);
  assert.deepEqual(
    shown.sort((a, b) => a - b),
    operations,
  );
});

test("the first view is of a size that can be read", () => {
  for (const document of [gpt2(48), resnet([3, 8, 36, 3]), unet(6), cellLoop(100)]) {
    const graph = graphOf(document);
    const { items } = visibleGraph(graph, initialState(graph));
    assert.ok(items.length >= 4 && items.length <= 60, `${graph.title}: ${items.length}`);
  }
});

test("the first view of a small model shows its operations", () => {
  const graph = graphOf(nest(3));
  assert.ok(visibleGraph(graph, initialState(graph)).items.length >= 2);
});

test("after a crash the first view shows the failing operation", () => {
  const document = gpt2(6);
  const node = document.nodes.findIndex((/** @type {any} */ row) => row.name === "transformer.h.4.mlp.act.tanh");
  document.nodes[node].status = "failed";
  const calls = [];
  for (let at = document.nodes[node].call; at !== null; at = document.calls[at].parent) calls.unshift(at);
  for (const call of calls) document.calls[call].status = "failed";
  document.error = { type: "RuntimeError", message: "no", node, calls, source: null, explanation: "" };
  const graph = graphOf(document);
  const visible = visibleGraph(graph, initialState(graph));
  assert.ok(namesOf(visible).includes("transformer.h.4.mlp.act.tanh"));
  const folded = visible.items.filter((item) => item.kind === "repeat").flatMap((item) => item.members);
  assert.ok(!folded.some((id) => graph.calls[id].status === "failed"), "what failed is not folded away");
});

test("deep nests and long chains need no deep call stack", () => {
  const deep = graphOf(nest(1000));
  assert.equal(visibleGraph(deep, allOpen(deep)).items.length, 1003);
  assert.equal(visibleGraph(deep, closedState()).items.length, 3);
  const long = graphOf(chain(20_000));
  const nodes = visibleGraph(long, allOpen(long)).items.filter(({ kind }) => kind === "node");
  assert.equal(nodes.length, 20_002);
});

test("a graph is indexed once", () => {
  const graph = graphOf(gpt2(2));
  assert.equal(indexGraph(graph), indexGraph(graph));
});
