import assert from "node:assert/strict";
import { test } from "node:test";
import { withLoops, withoutRounds } from "../src/loops.js";
import { findNames } from "../src/query.js";
import { allOpen, closedState, initialState, visibleGraph } from "../src/visible.js";
import { graphOf } from "./scenes.js";

/**
 * A model that runs some operations without a module around them, each on the result of the one before.
 *
 * @param {string[]} ops
 * @param {{isChain?: boolean, shapeOf?: (at: number) => number[]}} [options] isChain: else each operation that follows a `start`
 *   alone reads the input
 */
function modelOf(ops, { isChain = true, shapeOf = () => [4] } = {}) {
  const plain = { call: 0, source: null, note: null, status: "ok", arguments: [], metrics: {} };
  const specs = ops.map((_, at) => ({
    shape: shapeOf(at),
    dtype: "float32",
    device: "cpu",
    requires_grad: false,
    size_bytes: 16,
  }));
  const last = ops.length + 1;
  const steps = ops.map((op, at) => ({ ...plain, name: `${op}_${at}`, kind: "op", op, outputs: [at] }));
  return {
    schema_version: 1,
    title: "Loop",
    generator: "",
    specs,
    sources: [],
    calls: [
      {
        name: "Loop",
        fqn: "",
        type: "Loop",
        parent: null,
        status: "ok",
        inputs: [],
        outputs: [],
        detail: "",
        source: null,
        metrics: {},
      },
    ],
    nodes: [
      { ...plain, name: "x", kind: "input", op: null, outputs: [0] },
      ...steps,
      { ...plain, name: "output", kind: "output", op: null, outputs: [] },
    ],
    edges: [
      ...ops.map((op, at) => [isChain || op !== "start" ? at : 0, at + 1, 0, "0", 0]),
      [last - 1, last, 0, "0", 0],
    ],
    inputs: [0],
    outputs: [last],
    error: null,
    coverage: { operations: ops.length, nodes: ops.length, opaque: 0, outside: 0 },
    proof: { status: "not_run", reason: "" },
  };
}

/** @type {<Value>(count: number, of: Value[]) => Value[]} */
const times = (count, of) => Array.from({ length: count }, () => of).flat();

/** @param {import("../src/types.js").Graph} graph */
const roundsOf = (graph) => graph.calls.filter(({ loop }) => loop !== undefined);

test("the rounds of a loop over operations fold to one box", () => {
  const graph = graphOf(modelOf(["pad", ...times(20, ["mul", "add", "tanh"]), "sum"]));
  assert.deepEqual(
    roundsOf(graph).map(({ name, type }) => `${name} ${type}`),
    Array.from({ length: 20 }, (_, round) => `loop.${round} 3 operations`),
  );
  const { items } = visibleGraph(graph, closedState());
  assert.deepEqual(
    items.map(({ kind, name, members }) => `${kind} ${name} ${members.length}`),
    ["node x 0", "node pad_0 0", "repeat loop.0 20", "node sum_61 0", "node output 0"],
  );
  const open = visibleGraph(graph, allOpen(graph));
  assert.equal(open.items.filter(({ kind }) => kind === "node").length, graph.nodes.length);
});

test("shapes may differ from round to round", () => {
  const graph = graphOf(modelOf(times(15, ["mul", "add", "tanh"]), { shapeOf: (at) => [at + 1] }));
  assert.equal(roundsOf(graph).length, 15);
  const repeat = visibleGraph(graph, initialState(graph)).items.find(({ kind }) => kind === "repeat");
  assert.ok(repeat);
});

test("a round begins where no tensor comes from the round before", () => {
  // By the operations alone, the first round could as well be `b`, `c`, `start`.
  const ops = ["c", ...times(20, ["start", "b", "c"]), "start"];
  const graph = graphOf(modelOf(ops, { isChain: false }));
  const [first] = roundsOf(graph);
  const inside = graph.nodes.filter(({ call }) => call === first.id).map(({ op }) => op);
  assert.deepEqual(inside, ["start", "b", "c"]);
});

test("what is short, or runs a few times, stays as it is", () => {
  for (const ops of [
    times(9, ["mul", "add", "tanh"]),
    times(
      3,
      Array.from({ length: 20 }, (_, at) => `op${at}`),
    ),
  ]) {
    const graph = graphOf(modelOf(ops));
    assert.equal(withLoops(graph), graph);
    assert.deepEqual(roundsOf(graph), []);
  }
});

test("a name that is taken stays with whom it belongs to", () => {
  const document = modelOf(times(20, ["mul", "add"]));
  document.nodes[1].name = "loop.0";
  assert.equal(roundsOf(graphOf(document))[0].name, "loop_1.0");
});

test("Python hears of operations, not of rounds", () => {
  const graph = graphOf(modelOf(times(20, ["mul", "add"])));
  assert.deepEqual(withoutRounds(graph, ["x", "loop.1"]), ["x", "mul_2", "add_3"]);
  assert.deepEqual(findNames(graph, "loop"), ["Loop"]);
});
