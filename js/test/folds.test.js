import assert from "node:assert/strict";
import { test } from "node:test";
import { foldColumns } from "../src/arrange/columns.js";
import { chooseFolds } from "../src/arrange/folds.js";
import { splitScopes } from "../src/scopes.js";
import { allOpen, closedState, visibleGraph } from "../src/visible.js";
import { gpt2, graphOf, resnet } from "./synthetic.js";

/** @param {any} document @param {boolean} isOpen @returns {Map<string, number>} column heights by the name of the scope */
function foldsOf(document, isOpen) {
  const graph = graphOf(document);
  const visible = visibleGraph(graph, isOpen ? allOpen(graph) : closedState());
  const { scopes } = splitScopes(visible);
  const heights = chooseFolds(scopes);
  return new Map(scopes.map(({ item }, at) => [item < 0 ? "" : visible.items[item].name, heights[at]]));
}

test("where one child holds most of the height, that child is folded", () => {
  const folds = foldsOf(gpt2(12), true);
  assert.equal(folds.get(""), 0);
  assert.equal(folds.get("transformer"), Infinity);
  assert.equal(folds.get("transformer.h.0"), 0);
});

test("where the height is shared, the outermost is folded, and a child much too high as well", () => {
  const folds = foldsOf(resnet([3, 4, 12, 3]), true);
  assert.equal(folds.get(""), Infinity);
  assert.equal(folds.get("layer1"), 0);
  const inner = folds.get("layer3") ?? 0;
  assert.ok(inner > 0 && inner < Infinity, "to the height of the columns around it");
});

test("what is low is not folded", () => {
  assert.ok([...foldsOf(gpt2(12), false).values()].every((height) => height === 0));
});

/** A column of blocks of 100 x 400 px, each feeding the next. @param {number} count */
function strip(count) {
  const blocks = Array.from({ length: count }, () => ({
    width: 100,
    height: 400,
    isRound: false,
    inDx: null,
    outDx: null,
    axisDx: 0,
  }));
  const edges = blocks
    .slice(1)
    .map((_, at) => ({ tail: at, head: at + 1, tailPort: -1, headPort: -1, tensor: at, labelWidth: 0 }));
  const task = {
    isList: false,
    columnHeight: Infinity,
    blocks,
    ins: 0,
    outs: 0,
    edges,
    headerHeight: 0,
    titleWidth: 0,
  };
  const layout = {
    width: 148,
    height: count * 440,
    xs: blocks.map(() => 24),
    ys: blocks.map((_, at) => at * 440),
    inDx: [],
    outDx: [],
    axisDx: 0,
    lines: edges.map((_, at) => {
      const [top, bottom] = [at * 440 + 400, at * 440 + 440];
      return { points: [74, top, 74, top + 13, 74, bottom - 13, 74, bottom], isRail: false };
    }),
    labels: edges.map(() => null),
  };
  return { task, layout, bottoms: blocks.map((_, at) => at * 440 + 400) };
}

test("columns are filled from left to right, about equally", () => {
  const { task, layout, bottoms } = strip(24);
  const folded = foldColumns(task, layout, bottoms);
  const columns = [...new Set(folded.xs)];
  assert.ok(columns.length > 2);
  const counts = columns.map((x) => folded.xs.filter((other) => other === x).length);
  assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, counts.join());
  folded.xs.forEach((x, at) => assert.ok(at === 0 || x >= folded.xs[at - 1]));
  assert.ok(folded.height < layout.height / 2);
});

test("equal high blocks fill every column with the same number where that is possible", () => {
  for (const count of [12, 24]) {
    const { task, layout, bottoms } = strip(count);
    const high = { ...task, blocks: task.blocks.map((block) => ({ ...block, width: 400 })) };
    const folded = foldColumns(high, { ...layout, width: 448 }, bottoms);
    const counts = [...new Set(folded.xs)].map((x) => folded.xs.filter((other) => other === x).length);
    assert.equal(new Set(counts).size, 1, counts.join());
  }
});

test("a line that is cut still joins the blocks that it joined", () => {
  const { task, layout, bottoms } = strip(24);
  const folded = foldColumns(task, layout, bottoms);
  folded.lines.forEach(({ points }, at) => {
    assert.ok(Math.abs(points[0] - (folded.xs[at] + 50)) < 0.01);
    assert.ok(Math.abs(points[1] - (folded.ys[at] + 400)) < 0.01);
    assert.ok(Math.abs(points[points.length - 2] - (folded.xs[at + 1] + 50)) < 0.01);
    assert.ok(Math.abs(points[points.length - 1] - folded.ys[at + 1]) < 0.01);
    assert.equal(points.length % 6, 2);
  });
});

test("a line that turns above the first block of a column comes in where it turns to", () => {
  const { task, layout, bottoms } = strip(24);
  const folds = [...foldColumns(task, layout, bottoms).xs];
  const head = folds.findIndex((x) => x > folds[0]);
  // A line far out that passes the block before the cut and turns in above the one behind it.
  const [y0, y1, y2] = [bottoms[head - 2], bottoms[head - 1], layout.ys[head]];
  const points = [74, y0, 900, y0, 900, y0, 900, y0 + 20, 900, y0 + 40, 900, y1 - 40, 900, y1];
  points.push(900, y1 + 20, 74, y2 - 20, 74, y2);
  const edge = { ...task.edges[0], tail: head - 2, head, tensor: 99 };
  const lines = [...layout.lines, { points, isRail: false }];
  const far = { ...layout, lines, labels: [...layout.labels, null], width: 948 };
  const folded = foldColumns({ ...task, edges: [...task.edges, edge] }, far, bottoms);
  const column = folded.xs[head];
  const { points: drawn } = folded.lines[lines.length - 1];
  assert.ok(column > folded.xs[0]);
  assert.ok(Math.abs(drawn[drawn.length - 2] - (column + 50)) < 0.01);
  assert.ok(
    drawn.every((value, i) => i % 2 === 1 || value <= column + 100),
    "nothing runs out to the right of it",
  );
});

test("a short strip, and one that may not be folded, stay as they are", () => {
  const short = strip(4);
  assert.equal(foldColumns(short.task, short.layout, short.bottoms), short.layout);
  const long = strip(24);
  assert.equal(foldColumns({ ...long.task, columnHeight: 0 }, long.layout, long.bottoms), long.layout);
});
