import assert from "node:assert/strict";
import { test } from "node:test";
import { splitScopes } from "../src/scopes.js";
import { allOpen, closedState, depthState, visibleGraph } from "../src/visible.js";
import { DocumentBuilder, cellLoop, gpt2, graphOf } from "./synthetic.js";

/** @param {any} document @param {"all"|number} depth */
function split(document, depth) {
  const graph = graphOf(document);
  const visible = visibleGraph(graph, depth === "all" ? allOpen(graph) : depthState(graph, depth));
  return { visible, ...splitScopes(visible) };
}

test("there is one scope per open call and one for the top", () => {
  const { visible, scopes } = split(gpt2(3), "all");
  assert.equal(scopes.length, 1 + visible.items.filter((item) => item.isOpen).length);
  scopes.forEach((scope, at) => assert.ok(scope.parent < at));
  assert.equal(scopes.flatMap((scope) => scope.children).length, visible.items.length);
});

test("a tensor crosses a border once, however many read it inside", () => {
  const { visible, scopes } = split(gpt2(1), 3);
  const block = scopes.find((scope) => scope.item >= 0 && visible.items[scope.item].name === "transformer.h.0");
  assert.ok(block);
  // What comes in is read by the norm and by the residual sum.
  assert.equal(block.ins.size, 1);
  assert.equal(block.outs.size, 1);
  assert.equal(block.edges.filter((edge) => edge.tail === ~0).length, 2);
});

test("the path of a link leads from its tail to its head", () => {
  const { visible, scopes, paths } = split(gpt2(2), "all");
  visible.links.forEach((link, at) => {
    const steps = paths[at].map(({ scope, edge }) => ({ scope: scopes[scope], edge: scopes[scope].edges[edge] }));
    const [first, last] = [steps[0], steps[steps.length - 1]];
    assert.equal(first.scope.children[first.edge.tail], link.tail);
    assert.equal(last.scope.children[last.edge.head], link.head);
    for (let i = 1; i < steps.length; i += 1) {
      assert.ok(steps[i - 1].edge.head < 0 || steps[i].edge.tail < 0, "neighbouring steps meet at a port");
    }
    assert.equal(steps.filter(({ edge }) => edge.link >= 0).length, 1, "one step is labelled");
  });
});

test("scopes say how high they are", () => {
  const { scopes } = split(gpt2(1), "all");
  for (const scope of scopes) {
    const heights = scope.inner.filter((inner) => inner >= 0).map((inner) => scopes[inner].height + 1);
    assert.equal(scope.height, Math.max(0, ...heights));
  }
});

test("many results of one module form a list, fed by one cable", () => {
  const b = new DocumentBuilder("Cache");
  const x = b.input("x", [4]);
  const results = b.call("model", "Model", () => Array.from({ length: 8 }, () => b.op("relu", [x])));
  results.forEach((result, i) => b.output(`output[${i}]`, result));
  const graph = graphOf(b.build());
  const { scopes } = splitScopes(visibleGraph(graph, closedState()));
  assert.equal(scopes.length, 2);
  assert.ok(scopes[1].isList);
  assert.equal(scopes[1].children.length, 8);
  assert.equal(scopes[1].ins.size, 1);
  assert.equal(scopes[0].edges.filter((edge) => scopes[0].inner[edge.head] === 1).length, 1);
});

test("what many modules send to one reader shares a cable, what one sends stays apart", () => {
  const unfolded = split(cellLoop(8), "all");
  const reader = unfolded.visible.items.findIndex((item) => item.name === "stack");
  const place = unfolded.scopes[0].children.indexOf(reader);
  const tensors = unfolded.scopes[0].edges.filter((edge) => edge.head === place).map((edge) => edge.tensor);
  assert.equal(tensors.length, 8);
  assert.equal(new Set(tensors).size, 1);
  const folded = split(cellLoop(8), 1);
  const parallel = folded.scopes[0].edges.filter((edge) => edge.head === folded.scopes[0].children.length - 2);
  assert.equal(new Set(parallel.map((edge) => edge.tensor)).size, 8);
});

test("very many tensors from one box to another share a cable, a few stay apart", () => {
  for (const [count, lines] of [
    [9, 9],
    [30, 1],
  ]) {
    const b = new DocumentBuilder("Steps");
    const x = b.input("x", [4]);
    const parts = b.call("split", "Split", () => Array.from({ length: count }, () => b.op("relu", [x])));
    b.output("output", b.op("stack", parts));
    const { visible, scopes, paths } = split(b.build(), 1);
    const closed = splitScopes({ ...visible });
    assert.equal(closed.scopes[0].edges.filter(({ link }) => link >= 0).length, lines + 2);
    assert.equal(paths.length, visible.links.length);
    assert.equal(scopes.length, closed.scopes.length);
  }
});
