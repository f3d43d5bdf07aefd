import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange, toProblem } from "../src/arrange/arrange.js";
import { arrangeList } from "../src/arrange/list.js";
import { roundCorners } from "../src/arrange/pen.js";
import { straighten } from "../src/arrange/straighten.js";
import { solveSimply } from "../src/engine/simple.js";

/** @typedef {import("../src/arrange/arrange.js").ScopeTask} ScopeTask */

/**
 * @param {number} count closed children
 * @param {[number, number, number?][]} pairs tail, head, tensor (else one tensor per tail)
 * @param {Partial<ScopeTask> & {width?: number, labelWidth?: number}} [more]
 * @returns {ScopeTask}
 */
function taskOf(count, pairs, { width = 80, labelWidth = 0, ...more } = {}) {
  const block = { width, height: 30, isRound: false, inDx: null, outDx: null, axisDx: 0 };
  return {
    isList: false,
    columnHeight: 0,
    blocks: Array.from({ length: count }, () => ({ ...block })),
    ins: 0,
    outs: 0,
    edges: pairs.map(([tail, head, tensor = tail < 0 ? 100 - tail : tail]) => {
      const isInside = tail >= 0 && head >= 0;
      return { tail, head, tailPort: -1, headPort: -1, tensor, labelWidth: isInside ? labelWidth : 0 };
    }),
    headerHeight: 0,
    titleWidth: 0,
    ...more,
  };
}

/** @param {ScopeTask} task */
function layoutOf(task) {
  const { problem, railOf, kept } = toProblem(task);
  return { layout: arrange(task, solveSimply(problem), railOf, kept), railOf };
}

/** @param {number[]} points @returns {number} places where the line leaves its x */
function turnsOf(points) {
  let turns = 0;
  for (let i = 0; i + 7 < points.length; i += 6) if (Math.abs(points[i] - points[i + 6]) > 0.5) turns += 1;
  return turns;
}

test("a chain is one straight line of children", () => {
  const { layout } = layoutOf(
    taskOf(4, [
      [0, 1],
      [1, 2],
      [2, 3],
    ]),
  );
  assert.equal(new Set(layout.xs).size, 1);
  assert.deepEqual(
    layout.lines.map(({ points }) => turnsOf(points)),
    [0, 0, 0],
  );
});

test("an edge that passes others turns twice at most", () => {
  const { layout } = layoutOf(
    taskOf(5, [
      [0, 1],
      [1, 2],
      [2, 3],
      [3, 4],
      [0, 4],
    ]),
  );
  assert.ok(turnsOf(layout.lines[4].points) <= 2);
});

test("edges keep clear of the children that they pass, whatever the engine says", () => {
  const task = taskOf(3, [
    [0, 1],
    [1, 2],
    [0, 2, 7],
  ]);
  // The engine puts the long edge right through the middle child.
  const solution = { ranks: [0, 1, 2], xs: [0, 0, 0], bends: [[], [], [5]] };
  const [, , bends] = straighten(task, solution, solution.bends, { tails: [0, 0, 0], heads: [0, 0, 0] }, (end) => end);
  assert.ok(Math.abs(bends[0]) > 40, String(bends[0]));
});

test("edges that pass side by side keep their order and a distance", () => {
  const task = taskOf(5, [
    [0, 3],
    [1, 4],
  ]);
  const solution = { ranks: [0, 0, 1, 2, 2], xs: [0, 10, -200, 0, 10], bends: [[0], [1]] };
  const ends = { tails: [0, 10], heads: [0, 10] };
  const [first, second] = straighten(task, solution, solution.bends, ends, (end) => end);
  assert.ok(second[0] > first[0]);
});

test("parallel tensors between two children are told apart", () => {
  const { layout } = layoutOf(
    taskOf(2, [
      [0, 1, 1],
      [0, 1, 2],
      [0, 1, 3],
    ]),
  );
  const starts = layout.lines.map(({ points }) => points[0]);
  assert.equal(new Set(starts.map(Math.round)).size, 3);
  const ends = layout.lines.map(({ points }) => points[points.length - 2]);
  assert.equal(new Set(ends.map(Math.round)).size, 3);
  assert.deepEqual(
    layout.lines.map(({ points }) => turnsOf(points)),
    [0, 0, 0],
    "and run side by side",
  );
});

test("one tensor for two readers leaves its child at one place", () => {
  const { layout } = layoutOf(
    taskOf(3, [
      [0, 1],
      [0, 2],
    ]),
  );
  assert.equal(layout.lines[0].points[0], layout.lines[1].points[0]);
});

test("a tensor read far away by many runs in a gutter, except to the nearest reader", () => {
  /** @type {[number, number, number?][]} */
  const chain = Array.from({ length: 9 }, (_, at) => [at, at + 1]);
  const mask = [2, 4, 6, 8].map((head) => /** @type {[number, number, number]} */ ([0, head, 50]));
  const { layout, railOf } = layoutOf(taskOf(10, [...chain, ...mask]));
  assert.deepEqual(railOf.slice(9), [false, true, true, true]);
  const left = Math.min(...layout.xs);
  const right = Math.max(...layout.xs.map((x) => x + 80));
  for (const { points, isRail } of layout.lines.slice(10)) {
    assert.ok(isRail);
    const xs = points.filter((_, i) => i % 2 === 0);
    assert.ok(Math.min(...xs) < left || Math.max(...xs) > right);
  }
});

test("a gutter lies beside what it passes, not beside the widest of all", () => {
  /** @type {[number, number, number?][]} */
  const chain = Array.from({ length: 9 }, (_, at) => [at, at + 1]);
  const mask = [2, 4, 6, 8].map((head) => /** @type {[number, number, number]} */ ([0, head, 50]));
  const task = taskOf(10, [...chain, ...mask]);
  const { layout } = layoutOf({
    ...task,
    blocks: task.blocks.map((block, at) => (at === 9 ? { ...block, width: 900 } : block)),
  });
  for (const { points } of layout.lines.slice(10)) {
    const out = points.filter((_, i) => i % 2 === 0).map((x) => Math.abs(x - (layout.xs[0] + 40)));
    assert.ok(Math.max(...out) < 100, String(Math.max(...out)));
  }
});

test("beside a high child, what is only read stands at its foot and what only reads at its head", () => {
  const task = taskOf(5, [
    [0, 1],
    [1, 2],
    [3, 2],
    [0, 4],
  ]);
  const high = { ...task, blocks: task.blocks.map((block, at) => (at === 1 ? { ...block, height: 400 } : block)) };
  const { layout } = layoutOf(high);
  const [top, bottom] = [layout.ys[1], layout.ys[1] + 400];
  assert.equal(layout.ys[3] + task.blocks[3].height, bottom);
  assert.equal(layout.ys[4], top);
});

test("an edge that closes a cycle is drawn around", () => {
  const { layout, railOf } = layoutOf(
    taskOf(3, [
      [0, 1],
      [1, 2],
      [2, 1],
    ]),
  );
  assert.deepEqual(railOf, [false, false, true]);
  assert.ok(layout.lines[2].points.every(Number.isFinite));
});

test("a label that finds no room is left out", () => {
  const roomy = layoutOf(taskOf(2, [[0, 1]], { labelWidth: 60 })).layout;
  assert.ok(roomy.labels[0]);
  // Eight tensors side by side, 14 px apart: there is no room for 60 px between them.
  const pairs = Array.from({ length: 8 }, (_, tensor) => /** @type {[number, number, number]} */ ([0, 1, tensor]));
  const { labels } = layoutOf(taskOf(2, pairs, { labelWidth: 60, width: 160 })).layout;
  assert.ok(labels.filter(Boolean).length <= 2);
});

test("ports of the main line are on one axis, right of the title", () => {
  const task = taskOf(
    3,
    [
      [~0, 0],
      [~1, 1],
      [0, 2],
      [1, 2],
      [2, ~0],
    ],
    { ins: 2, outs: 1, headerHeight: 30, titleWidth: 120 },
  );
  const { layout } = layoutOf(task);
  assert.ok(Math.abs(layout.inDx[0] - layout.outDx[0]) < 0.01);
  for (const dx of layout.inDx) assert.ok(layout.width / 2 + dx > 120);
  for (const [at, { points }] of layout.lines.entries()) {
    if (task.edges[at].tail < 0) assert.equal(points[1], 0);
    if (task.edges[at].head < 0) assert.equal(points[points.length - 1], layout.height);
  }
});

test("two inputs of one child come in side by side without a turn", () => {
  const { layout } = layoutOf(
    taskOf(
      1,
      [
        [~0, 0],
        [~1, 0],
        [0, ~0],
      ],
      { ins: 2, outs: 1, headerHeight: 30, titleWidth: 40 },
    ),
  );
  for (const { points } of layout.lines.slice(0, 2)) assert.equal(turnsOf(points), 0);
});

test("a list stands in columns, each child fed from the side", () => {
  const count = 30;
  const task = taskOf(
    count,
    Array.from({ length: count }, (_, head) => /** @type {[number, number]} */ ([~0, head])),
    { isList: true, ins: 1 },
  );
  const layout = arrangeList(task);
  const columns = new Set(layout.xs).size;
  assert.ok(columns > 1 && columns < 5);
  layout.lines.forEach(({ points }, at) => {
    assert.deepEqual(points.slice(0, 2), [0, 0]);
    assert.deepEqual(points.slice(-2), [layout.xs[at], layout.ys[at] + 15]);
  });
});

test("rounded corners keep the ends and stay within the corners", () => {
  const points = roundCorners([0, 0, 0, 100, 50, 100, 50, 200]);
  assert.deepEqual(points.slice(0, 2), [0, 0]);
  assert.deepEqual(points.slice(-2), [50, 200]);
  assert.equal(points.length % 6, 2);
  points.forEach((value, i) => assert.ok(value >= 0 && value <= (i % 2 === 0 ? 50 : 200)));
});
