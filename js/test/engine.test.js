import assert from "node:assert/strict";
import { test } from "node:test";
import { createSolver } from "../src/engine/client.js";
import { assignRanks } from "../src/engine/ranks.js";
import { solveSimply } from "../src/engine/simple.js";
import { createVizEngine, isFitForViz } from "../src/engine/viz.js";

/** @typedef {import("../src/engine/ranks.js").Problem} Problem */

/**
 * @param {number} count boxes
 * @param {[number, number][]} pairs
 * @param {{ins?: number, outs?: number, width?: number}} [more]
 * @returns {Problem}
 */
function problemOf(count, pairs, { ins = 0, outs = 0, width = 60 } = {}) {
  const kinds = [...new Array(count).fill("box"), ...new Array(ins).fill("in"), ...new Array(outs).fill("out")];
  return {
    kinds,
    widths: kinds.map((kind) => (kind === "box" ? width : 10)),
    heights: kinds.map((kind) => (kind === "box" ? 30 : 0)),
    edges: pairs.map(([tail, head]) => ({ tail, head, tailDx: 0, headDx: 0, weight: 4 })),
  };
}

const viz = await createVizEngine(null);
/** @type {[string, (problem: Problem) => import("../src/engine/ranks.js").Solution][]} */
const engines = [
  ["viz", (problem) => viz.solve(problem)],
  ["simple", solveSimply],
];

for (const [name, solve] of engines) {
  test(`${name}: edges run downwards and bend once per rank that they pass`, () => {
    // A diamond whose tip is also reached past both sides.
    const problem = problemOf(5, [
      [0, 1],
      [0, 2],
      [1, 3],
      [2, 3],
      [3, 4],
      [0, 4],
    ]);
    const { ranks, bends } = solve(problem);
    problem.edges.forEach(({ tail, head }, at) => {
      assert.ok(ranks[tail] < ranks[head]);
      assert.equal(bends[at].length, ranks[head] - ranks[tail] - 1);
    });
  });

  test(`${name}: nodes of a rank don't overlap, nor do edges that pass`, () => {
    const problem = problemOf(8, [
      [0, 1],
      [0, 2],
      [0, 3],
      [1, 4],
      [2, 5],
      [3, 6],
      [4, 7],
      [5, 7],
      [6, 7],
      [0, 7],
    ]);
    const { ranks, xs, bends } = solve(problem);
    for (const rank of new Set(ranks)) {
      const row = ranks.flatMap((other, node) => (other === rank ? [node] : [])).sort((a, b) => xs[a] - xs[b]);
      for (let i = 1; i < row.length; i += 1) assert.ok(xs[row[i]] - xs[row[i - 1]] >= 60);
    }
    bends[9].forEach((x, i) => {
      for (const node of [1, 2, 3, 4, 5, 6]) if (ranks[node] === i + 1) assert.ok(Math.abs(xs[node] - x) > 30);
    });
  });

  test(`${name}: ports have ranks of their own at the top and at the bottom`, () => {
    const problem = problemOf(
      2,
      [
        [2, 0],
        [0, 1],
        [3, 1],
        [1, 4],
        [0, 5],
      ],
      { ins: 2, outs: 2 },
    );
    const { ranks } = solve(problem);
    assert.deepEqual([ranks[2], ranks[3]], [0, 0]);
    assert.ok(ranks[0] > 0 && ranks[1] > ranks[0]);
    assert.deepEqual([ranks[4], ranks[5]], [ranks[1] + 1, ranks[1] + 1]);
  });

  test(`${name}: a chain is straight, also through ports off the middle`, () => {
    const problem = problemOf(3, [
      [0, 1],
      [1, 2],
    ]);
    problem.edges[0].headDx = -15;
    problem.edges[1].tailDx = -15;
    const { xs } = solve(problem);
    assert.ok(Math.abs(xs[0] - (xs[1] - 15)) <= 1);
    assert.ok(Math.abs(xs[2] - xs[0]) <= 1);
  });

  test(`${name}: cycles and lone nodes are laid out as well`, () => {
    const problem = problemOf(4, [
      [0, 1],
      [1, 2],
      [2, 0],
    ]);
    const { ranks, xs } = solve(problem);
    assert.ok(ranks.every(Number.isInteger) && xs.every(Number.isFinite));
  });

  test(`${name}: the same problem has the same solution`, () => {
    const problem = problemOf(6, [
      [0, 2],
      [1, 2],
      [2, 3],
      [2, 4],
      [3, 5],
      [4, 5],
    ]);
    assert.deepEqual(solve(problem), solve(problem));
  });
}

test("sources move down to what reads them", () => {
  // 4 is read by the last of a chain of four only.
  const problem = problemOf(5, [
    [0, 1],
    [1, 2],
    [2, 3],
    [4, 3],
  ]);
  assert.deepEqual(assignRanks(problem).ranks, [0, 1, 2, 3, 2]);
});

test("an edge that closes a cycle is told", () => {
  const problem = problemOf(3, [
    [0, 1],
    [1, 2],
    [2, 1],
  ]);
  assert.deepEqual(assignRanks(problem).isReversed, [false, false, true]);
});

test("simple: few crossings where none are needed", () => {
  // Three pairs, given in an order that crosses.
  const problem = problemOf(6, [
    [0, 5],
    [1, 4],
    [2, 3],
  ]);
  const { xs } = solveSimply(problem);
  const order = (/** @type {number[]} */ nodes) => [...nodes].sort((a, b) => xs[a] - xs[b]);
  const lower = order([0, 1, 2]).map((node) => 5 - node);
  assert.deepEqual(order([3, 4, 5]), lower);
});

test("viz: after a failure the engine starts anew and goes on", async () => {
  const engine = await createVizEngine(null);
  const good = problemOf(3, [
    [0, 1],
    [0, 2],
  ]);
  const bad = { ...good, heights: [Infinity, 30, 30] };
  const [first, second, third] = await engine.solveAll([good, bad, good]);
  assert.ok(first);
  assert.equal(second, null);
  assert.deepEqual(third, first);
});

test("viz: very wide children keep their width", async () => {
  for (const width of [20_000, 50_000, 90_000]) {
    const problem = problemOf(3, [
      [0, 2],
      [1, 2],
    ]);
    problem.widths[0] = width;
    problem.edges[0].tailDx = width / 4;
    const { xs, ranks } = viz.solve(problem);
    assert.equal(ranks[0], ranks[1]);
    assert.ok(Math.abs(xs[0] - xs[1]) >= width / 2 + 30, `${width}: ${xs}`);
  }
});

test("viz: what it can't solve the simple engine does", async () => {
  const engine = await createVizEngine(null);
  const bad = { ...problemOf(2, [[0, 1]]), heights: [Infinity, 30] };
  assert.deepEqual(engine.solve(bad).ranks, [0, 1]);
});

test("a solver without Graphviz, or with broken bytes, solves by the simple engine", async () => {
  const problem = problemOf(3, [
    [0, 1],
    [0, 2],
  ]);
  const without = createSolver({ wasm: null });
  assert.equal(await without.ready(), "simple");
  assert.deepEqual(await without.solve([problem], "simple"), [solveSimply(problem)]);
});

test("a solver answers in the order asked, large problems by the simple engine", async () => {
  const small = problemOf(3, [
    [0, 1],
    [0, 2],
  ]);
  const large = problemOf(
    400,
    Array.from({ length: 399 }, (_, i) => /** @type {[number, number]} */ ([0, i + 1])),
  );
  assert.ok(isFitForViz(small) && !isFitForViz(large));
  const solver = createSolver({ wasm: new Uint8Array(), workerFactory: null });
  assert.equal(await solver.ready(), "viz", "in Node the package brings the bytes itself");
  const [first, second, third] = await solver.solve([small, large, small], "viz");
  assert.deepEqual(second, solveSimply(large));
  assert.deepEqual(first, third);
  assert.deepEqual(first, viz.solve(small));
  solver.destroy();
});

/**
 * A worker that runs here: what it is sent goes to `answer`.
 *
 * @param {(message: any) => any} answer undefined to stay silent
 */
function fakeWorker(answer) {
  const worker = {
    /** @type {((event: {data: any}) => void) | null} */
    onmessage: null,
    onerror: null,
    isTerminated: false,
    postMessage(/** @type {any} */ message) {
      queueMicrotask(() => {
        const reply = answer(message);
        if (reply !== undefined && !worker.isTerminated)
          worker.onmessage?.({ data: { id: message.id, answer: reply } });
      });
    },
    terminate() {
      worker.isTerminated = true;
    },
    addEventListener() {},
  };
  return worker;
}

test("a worker that doesn't start is given up, and this thread does the work", async () => {
  /** @type {ReturnType<typeof fakeWorker>[]} */
  const workers = [];
  const factory = () => {
    workers.push(fakeWorker(() => false));
    return /** @type {any} */ (workers[workers.length - 1]);
  };
  const solver = createSolver({ wasm: new Uint8Array(1), workerFactory: factory });
  assert.equal(await solver.ready(), "viz");
  assert.ok(workers[0].isTerminated);
  const problem = problemOf(3, [
    [0, 1],
    [0, 2],
  ]);
  assert.deepEqual(await solver.solve([problem], "viz"), [viz.solve(problem)]);
});

test("views that share the bytes share a worker, which ends with the last of them", async () => {
  /** @type {ReturnType<typeof fakeWorker>[]} */
  const workers = [];
  const factory = () => {
    workers.push(fakeWorker((message) => (message.wasm ? true : message.problems.map(() => null))));
    return /** @type {any} */ (workers[workers.length - 1]);
  };
  const wasm = new Uint8Array(2);
  const [one, two] = [0, 1].map(() => createSolver({ wasm, workerFactory: factory }));
  assert.deepEqual(await Promise.all([one.ready(), two.ready()]), ["viz", "viz"]);
  assert.equal(workers.length, 1);
  one.destroy();
  assert.ok(!workers[0].isTerminated);
  two.destroy();
  assert.ok(workers[0].isTerminated);
});
