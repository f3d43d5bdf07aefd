import assert from "node:assert/strict";
import { test } from "node:test";
import { edgeText, ellipsise, faceOf, headerDetail, operationText, shortCallName, textWidth } from "../src/measure.js";
import { allOpen, closedState, depthState, visibleGraph } from "../src/visible.js";
import { cellLoop, gpt2, graphOf } from "./synthetic.js";

test("widths add up and grow with the font", () => {
  // "i" is 28 and "w" 82 hundredths of the size in the table of the regular face.
  assert.ok(Math.abs(textWidth("iw", 10, "sans") - 11) < 1e-9);
  assert.equal(textWidth("ab", 20, "mono"), 2 * textWidth("ab", 10, "mono"));
  assert.ok(textWidth("name", 12, "bold") > textWidth("name", 12, "sans"));
  assert.ok(textWidth("漢字", 12, "sans") >= 24, "wide characters take a full em");
});

test("long text loses its middle", () => {
  assert.equal(ellipsise("short", 10), "short");
  assert.equal(ellipsise("abcdefghijklmnop", 9), "abcde…nop");
  assert.equal([...ellipsise("x".repeat(500), 20)].length, 20);
  assert.equal(ellipsise("🙂🙂🙂🙂", 3), "🙂🙂…", "characters are not cut in half");
});

test("operations read as people write them", () => {
  assert.equal(operationText("add"), "+");
  assert.equal(operationText("matmul"), "@");
  assert.equal(operationText("getitem"), "x[…]");
  assert.equal(operationText("softmax"), "softmax");
});

test("a name is written without that of the enclosing call", () => {
  const graph = graphOf(gpt2(2));
  const id = graph.calls.findIndex((call) => call.name === "transformer.h.1.attn.c_proj");
  assert.equal(shortCallName(graph, id), "c_proj");
  const block = graph.calls.findIndex((call) => call.name === "transformer.h.1");
  assert.equal(shortCallName(graph, block), "h.1");
});

test("faces of modules, repeats and operations", () => {
  const graph = graphOf(gpt2(12));
  const faces = new Map();
  const visible = visibleGraph(graph, depthState(graph, 2));
  for (const item of visible.items) faces.set(item.name, faceOf(graph, item));
  const repeat = faces.get("transformer.h.0");
  assert.equal(repeat.title, "h.0 … h.11");
  assert.equal(repeat.subtitle, "GPT2Block");
  assert.equal(repeat.badge, "×12");
  // Twelve blocks of 7,087,872 parameters.
  assert.match(repeat.detail, /^85\.1 M params in 12 equal blocks$/);
  const sum = faces.get("transformer.add");
  assert.equal(sum.title, "+");
  assert.equal(sum.width, sum.height, "a sign stands in a circle");
  const range = faces.get("transformer.arange");
  assert.ok(range.width > range.height, "a word does not");
  assert.equal(faces.get("transformer").title, "transformer");
});

test("a module called again and again says so", () => {
  const graph = graphOf(cellLoop(10));
  const item = visibleGraph(graph, closedState()).items.find(({ kind }) => kind === "repeat");
  assert.ok(item);
  const face = faceOf(graph, item);
  assert.equal(face.title, "cell");
  assert.match(face.detail, /called 10 times/);
});

test("every box has a size, and no name makes it endless", () => {
  const document = gpt2(1);
  document.calls[1].type = "T".repeat(4000);
  document.nodes.find((/** @type {any} */ node) => node.op === "arange").op = "o".repeat(4000);
  const graph = graphOf(document);
  for (const state of [closedState(), allOpen(graph)]) {
    for (const item of visibleGraph(graph, state).items) {
      const { width, height } = faceOf(graph, item);
      assert.ok(width > 0 && width < 700 && height > 0, item.name.slice(0, 40));
    }
  }
});

test("edges say the shape, and the dtype where it is not the usual one", () => {
  const graph = graphOf(gpt2(1));
  const ids = graph.specs.findIndex((spec) => spec.dtype === "int64" && spec.shape?.length === 2);
  assert.equal(edgeText(graph, ids, "float32"), "1×128 i64");
  assert.equal(edgeText(graph, ids, "int64"), "1×128");
});

test("a closed module tells what is in it as far as there is room, an open one what it costs", () => {
  const graph = graphOf(gpt2(2));
  for (const call of graph.calls) call.metrics.flops = 1.9e9;
  const { items } = visibleGraph(graph, depthState(graph, 4));
  const detailOf = (/** @type {string} */ name) => {
    const item = items.find((one) => one.name === name);
    assert.ok(item, name);
    return faceOf(graph, item).detail;
  };
  assert.equal(detailOf("transformer.h.1"), "7.09 M · LayerNorm, GPT2Attention, …");
  assert.equal(detailOf("transformer.h.0.attn.c_proj"), "591 k params");
  assert.equal(detailOf("transformer.h.0.attn"), "2.36 M params · 1.9 GFLOPs");
  const small = visibleGraph(graph, depthState(graph, 3)).items.find(({ name }) => name === "transformer.h.0.attn");
  assert.equal(small && faceOf(graph, small).detail, "2.36 M · 2×Linear, Dropout");
});

test("no line runs through what a title strip tells", () => {
  const detail = "7.09 M params · 1.9 GFLOPs";
  assert.equal(headerDetail(detail, 400, false, [200]), detail);
  assert.equal(headerDetail(detail, 400, false, [200, 240]), "7.09 M params");
  assert.equal(headerDetail(detail, 400, false, [370]), "");
  assert.equal(headerDetail("9.41 k params", 200, false, [100]), "9.41 k params");
  assert.equal(headerDetail("9.41 k params", 200, true, [100]), "", "beside the mark of a failure");
});
