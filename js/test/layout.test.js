import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { createVizEngine } from "../src/engine/viz.js";
import { createLayouter, createMemo, layoutSync, simpleEngine } from "../src/layout.js";
import { allOpen, closedState, depthState, initialState, openState, visibleGraph } from "../src/visible.js";
import { measureQuality } from "./quality.js";
import { DocumentBuilder, cellLoop, chain, gpt2, graphOf, nest, resnet, unet } from "./synthetic.js";

const documents = new URL("../../tests/documents/", import.meta.url);
const viz = await createVizEngine(null);
const engines = [viz, simpleEngine];

/** @type {[string, any][]} */
const models = [
  ["gpt2", gpt2(4)],
  ["gpt2 with a mask", gpt2(12, { hasMask: true })],
  ["resnet", resnet([2, 3, 4, 2])],
  ["unet", unet(4)],
  ["loop", cellLoop(12)],
  ["chain", chain(50)],
  ["nest", nest(20)],
  ...readdirSync(documents).map(
    (name) => /** @type {[string, any]} */ ([name, JSON.parse(readFileSync(new URL(name, documents), "utf8"))]),
  ),
];

for (const engine of engines) {
  for (const [name, document] of models) {
    test(`${engine.name}: ${name}: nothing overlaps and no edge runs through a box`, () => {
      const graph = graphOf(document);
      const shown = { constants: false, parameters: false, shapeOnly: false, dead: false };
      for (const state of [
        closedState(),
        initialState(graph),
        depthState(graph, 2),
        allOpen(graph),
        allOpen(graph, shown),
      ]) {
        const scene = layoutSync(graph, visibleGraph(graph, state), engine);
        const { edgesThroughBoxes, boxOverlaps, labelOverlaps } = measureQuality(scene);
        assert.deepEqual(
          { edgesThroughBoxes, boxOverlaps, labelOverlaps },
          { edgesThroughBoxes: 0, boxOverlaps: 0, labelOverlaps: 0 },
        );
      }
    });
  }

  test(`${engine.name}: routes start at their tail and end at their head`, () => {
    const graph = graphOf(gpt2(3, { hasMask: true }));
    const scene = layoutSync(graph, visibleGraph(graph, allOpen(graph)), engine);
    assert.equal(scene.routes.length, scene.visible.links.length);
    for (const { points, tail, head } of scene.routes) {
      assert.equal(points.length % 6, 2, "a point, then triples");
      assert.ok(points.every(Number.isFinite));
      assert.ok(isOnBorder(scene.boxes[tail], points[0], points[1]));
      assert.ok(isOnBorder(scene.boxes[head], points[points.length - 2], points[points.length - 1]));
    }
  });

  test(`${engine.name}: equal blocks look alike and stand in one column`, () => {
    const graph = graphOf(gpt2(6));
    const all = allOpen(graph);
    const blockIds = graph.calls
      .filter((call) => call.type === "GPT2Block" || call.name === "transformer")
      .map((call) => call.id);
    const scene = layoutSync(graph, visibleGraph(graph, { ...all, open: new Set(blockIds) }), engine);
    const blocks = scene.boxes.filter((box) => box.subtitle === "GPT2Block");
    assert.equal(blocks.length, 6);
    for (const block of blocks) {
      assert.equal(block.width, blocks[0].width);
      assert.equal(block.height, blocks[0].height);
      assert.ok(Math.abs(block.x - blocks[0].x) < 1);
    }
  });
}

/** @type {(box: import("../src/types.js").Box, x: number, y: number) => boolean} */
function isOnBorder(box, x, y) {
  const inside = x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y - 1 && y <= box.y + box.height + 1;
  // Half a circle's height is the most that a round end lets a line come in from the corner.
  const depth = Math.min(x - box.x, box.x + box.width - x, y - box.y, box.y + box.height - y);
  return inside && depth <= box.height / 2;
}

test("48 layers take as many engine calls as 12, and no more width", () => {
  const [few, many] = [12, 48].map((layers) => {
    const graph = graphOf(gpt2(layers, { hasMask: true }));
    return layoutSync(graph, visibleGraph(graph, allOpen(graph)), viz);
  });
  assert.equal(many.stats.engineCalls, few.stats.engineCalls);
  assert.ok(many.width <= 1.3 * few.width);
});

test("outputs of every layer don't make the stack wider", () => {
  const withCache = (/** @type {number} */ layers) => {
    const b = new DocumentBuilder("Cached");
    let x = b.input("x", [4]);
    /** @type {import("./synthetic.js").Tensor[]} */
    const kept = [];
    for (let i = 0; i < layers; i += 1) {
      x = b.call(`h.${i}`, "Block", () => {
        kept.push(b.op("exp", [x]));
        return b.op("relu", [x]);
      });
    }
    b.output("output.x", x);
    kept.forEach((tensor, i) => b.output(`output.cache[${i}]`, tensor));
    const graph = graphOf(b.build());
    return layoutSync(graph, visibleGraph(graph, allOpen(graph)), viz).width;
  };
  assert.ok(withCache(12) <= withCache(8) * 1.3);
});

test("a long strip is folded into columns, a short one is not", () => {
  const long = graphOf(resnet([6, 6, 6, 6]));
  const scene = layoutSync(long, visibleGraph(long, allOpen(long)), viz);
  assert.ok(scene.height < 3 * scene.width, `${scene.width} x ${scene.height}`);
  const stages = scene.boxes.filter((box) => box.subtitle === "Sequential" && box.item.depth === 0);
  assert.ok(stages[3].x > stages[0].x + stages[0].width, "later stages stand to the right");
  const short = graphOf(resnet([2, 2, 2, 2]));
  const strip = layoutSync(short, visibleGraph(short, closedState()), viz);
  assert.ok(strip.height > strip.width);
});

test("what comes out of folded columns leaves where it came in", () => {
  const graph = graphOf(gpt2(16));
  const scene = layoutSync(graph, visibleGraph(graph, allOpen(graph)), viz);
  const named = (/** @type {string} */ name) => {
    const box = scene.boxes.find((candidate) => candidate.item.name === name);
    assert.ok(box, name);
    return box;
  };
  const stack = named("transformer");
  assert.ok(stack.width > stack.height / 4, "it is folded");
  const middle = (/** @type {import("../src/types.js").Box} */ box) => box.x + box.width / 2;
  assert.ok(Math.abs(middle(named("input_ids")) - middle(named("output.logits"))) < 1);
});

test("a click lays out only what changed", () => {
  const graph = graphOf(gpt2(12));
  const memo = createMemo();
  const before = depthState(graph, 3);
  layoutSync(graph, visibleGraph(graph, before), viz, memo);
  const visible = visibleGraph(graph, before);
  const attention = visible.items.find((item) => item.name === "transformer.h.0.attn");
  assert.ok(attention);
  const after = layoutSync(graph, visibleGraph(graph, openState(graph, before, attention)), viz, memo);
  // Attention itself, its block, the transformer; the top level is a chain and asks no engine.
  assert.ok(after.stats.engineCalls <= 3);
  const again = layoutSync(graph, visibleGraph(graph, before), viz, memo);
  assert.equal(again.stats.engineCalls, 0);
});

test("a remembered scene equals a fresh one", () => {
  const graph = graphOf(unet(3));
  const memo = createMemo();
  layoutSync(graph, visibleGraph(graph, closedState()), viz, memo);
  const strip = (/** @type {import("../src/types.js").Scene} */ { boxes, routes }) => ({ boxes, routes });
  const visible = visibleGraph(graph, allOpen(graph));
  assert.deepEqual(strip(layoutSync(graph, visible, viz, memo)), strip(layoutSync(graph, visible, viz)));
});

test("a tensor for many far readers runs in a gutter", () => {
  const graph = graphOf(gpt2(12, { hasMask: true }));
  const visible = visibleGraph(graph, allOpen(graph));
  const scene = layoutSync(graph, visible, viz);
  const mask = graph.nodes.find((node) => node.op === "to");
  const rails = scene.routes.filter((route) => route.isRail);
  assert.ok(rails.length >= 10);
  assert.ok(rails.every((route) => visible.links[route.link].tailNode === mask?.id));
});

test("labels say shapes, weights tell how much data flows", () => {
  const graph = graphOf(gpt2(2));
  const scene = layoutSync(graph, visibleGraph(graph, closedState()), viz);
  assert.deepEqual(
    scene.routes.map((route) => route.label?.text),
    ["1×128 i64", "1×128×768", "1×128×50257"],
  );
  const weights = scene.routes.map((route) => route.weight);
  assert.equal(weights[2], 1);
  assert.ok(weights[0] < weights[1] && weights[1] < weights[2]);
});

test("most edges find room for their label", () => {
  for (const document of [gpt2(4), resnet([2, 2, 2, 2]), unet(4)]) {
    const graph = graphOf(document);
    const scene = layoutSync(graph, visibleGraph(graph, allOpen(graph)), viz);
    const tensors = new Set(scene.visible.links.map((link) => `${link.tailNode} ${link.tailSlot}`)).size;
    assert.ok(measureQuality(scene).labels >= 0.85 * tensors, graph.title);
  }
});

test("an empty graph is an empty scene", () => {
  const graph = graphOf(new DocumentBuilder("Nothing").build());
  const scene = layoutSync(graph, visibleGraph(graph, initialState(graph)), viz);
  assert.deepEqual(scene.boxes, []);
  assert.ok(scene.width >= 0 && scene.height >= 0);
});

/** @param {number} [width] @returns {object} a document in which every drawing has many crossings */
function tangle(width = 3) {
  const builder = new DocumentBuilder("Tangle");
  const inputs = Array.from({ length: width }, (_, at) => builder.input(`x${at}`, [2, 3]));
  const sums = inputs.map(() => builder.op("stack", inputs, [width, 2, 3]));
  sums.forEach((sum, at) => builder.output(`y${at}`, sum));
  return builder.build();
}

test("a layouter answers, and a later call takes the place of an earlier one", async () => {
  const graph = graphOf(tangle());
  const layouter = createLayouter({ wasm: new Uint8Array(), workerFactory: null });
  const first = layouter.layout(graph, visibleGraph(graph, allOpen(graph)));
  const second = layouter.layout(graph, visibleGraph(graph, closedState()));
  assert.equal(await first, null);
  const scene = await second;
  assert.equal(scene?.stats.engine, "viz");
  assert.equal(scene?.boxes.length, 9);
  // By now that graph is remembered; another is not.
  const pending = layouter.layout(graphOf(tangle(4)), visibleGraph(graphOf(tangle(4)), closedState()));
  layouter.destroy();
  assert.equal(await pending, null);
});

test("a scope that hardly crosses itself is drawn without Graphviz", async () => {
  const graph = graphOf(gpt2(4));
  const layouter = createLayouter({
    wasm: new Uint8Array(),
    workerFactory: () => {
      throw new Error("nothing here is worth a worker");
    },
  });
  const scene = await layouter.layout(graph, visibleGraph(graph, allOpen(graph)));
  assert.equal(scene?.stats.engine, "simple");
  assert.ok((scene?.stats.engineCalls ?? 0) > 0);
});

test("a layouter without Graphviz draws with the simple engine", async () => {
  const graph = graphOf(gpt2(2));
  const scene = await createLayouter().layout(graph, visibleGraph(graph, allOpen(graph)));
  assert.equal(scene?.stats.engine, "simple");
});
