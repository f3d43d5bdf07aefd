/**
 * What is computed once per graph: the children of each module call in order of execution, which calls have the same
 * structure, which of them repeat, and which nodes a filter may hide. Linear in the graph (times nesting depth), without
 * recursion. Pure.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").GraphEdge} GraphEdge
 *
 * @typedef {"constants"|"parameters"|"shapeOnly"|"dead"} Filter
 *
 * @typedef {Object} Repeat a run of equal groups of siblings
 * @property {number} scope id of the enclosing call
 * @property {number} from position of the first group in the flow of the scope
 * @property {number} period children per group: a call and what runs between two of them
 * @property {number[]} members the first call of each group
 *
 * @typedef {Object} GraphIndex
 * @property {number[][]} flow per call: its children in order of execution; a node as its id, a call as `~id`
 * @property {number[][]} state per call: its parameters, buffers and constants (node ids)
 * @property {number[]} depth per call; 0 for the outermost
 * @property {number[]} size per call: operations below it
 * @property {Map<number, Repeat[]>} repeats by call: what repeats among its children, in order
 * @property {Map<number, Repeat>} repeatOf by call: the run that it is part of
 * @property {Map<number, number>} memberOf by call that is part of a run: the first call of its group
 * @property {Map<string, number>} callByName
 * @property {Map<string, number>} nodeByName
 * @property {GraphEdge[][]} inEdges per node
 * @property {(Filter | null)[]} filterOf per node: the filter that hides it, leaving dead ends aside
 * @property {Uint8Array} isDead per node: whether nothing that the model returns depends on it
 * @property {Record<Filter, number>} counts nodes by filter
 */
import { findRepeats } from "./repeats.js";

/** Operations that only change how the same numbers are addressed. */
const SHAPE_ONLY = new Set(
  (
    "view view_as reshape reshape_as transpose t T mT H permute contiguous expand expand_as unsqueeze squeeze flatten " +
    "unflatten movedim moveaxis swapaxes swapdims unbind detach alias clone_view ravel"
  ).split(" "),
);

/** @type {WeakMap<Graph, GraphIndex>} */
const indexes = new WeakMap();

/**
 * @param {Graph} graph
 * @returns {GraphIndex} the same object for the same graph
 */
export function indexGraph(graph) {
  const known = indexes.get(graph);
  if (known) return known;
  const index = buildIndex(graph);
  indexes.set(graph, index);
  return index;
}

/** @param {Graph} graph @returns {GraphIndex} */
function buildIndex(graph) {
  const depth = depthsOf(graph);
  const inEdges = edgesByHead(graph);
  const isDead = deadNodes(graph, inEdges);
  const filterOf = graph.nodes.map(filterOfNode);
  const { flow, state, size } = childrenOf(graph);
  const repeats = findRepeats(graph, { flow, depth });
  /** @type {Record<Filter, number>} */
  const counts = { constants: 0, parameters: 0, shapeOnly: 0, dead: 0 };
  graph.nodes.forEach((node) => {
    const filter = filterOf[node.id];
    if (filter !== null) counts[filter] += 1;
    else if (isDead[node.id]) counts.dead += 1;
  });
  const { repeatOf, memberOf } = membership(flow, repeats);
  return {
    flow,
    state,
    depth,
    size,
    repeats,
    repeatOf,
    memberOf,
    callByName: new Map(graph.calls.map((call) => [call.name, call.id])),
    nodeByName: new Map(graph.nodes.map((node) => [node.name, node.id])),
    inEdges,
    filterOf,
    isDead,
    counts,
  };
}

/**
 * @param {number[][]} flow
 * @param {Map<number, Repeat[]>} repeats
 * @returns {Pick<GraphIndex, "repeatOf"|"memberOf">}
 */
function membership(flow, repeats) {
  /** @type {Map<number, Repeat>} */
  const repeatOf = new Map();
  /** @type {Map<number, number>} */
  const memberOf = new Map();
  for (const run of [...repeats.values()].flat()) {
    const part = flow[run.scope].slice(run.from, run.from + run.period * run.members.length);
    part.forEach((child, place) => {
      if (child >= 0) return;
      repeatOf.set(~child, run);
      memberOf.set(~child, run.members[Math.floor(place / run.period)]);
    });
  }
  return { repeatOf, memberOf };
}

/** @param {Graph} graph @returns {number[]} */
function depthsOf(graph) {
  /** @type {number[]} */
  const depth = [];
  for (const call of graph.calls) depth.push(call.parent === null ? 0 : depth[call.parent] + 1);
  return depth;
}

/** @param {Graph} graph @returns {GraphEdge[][]} */
function edgesByHead(graph) {
  /** @type {GraphEdge[][]} */
  const found = graph.nodes.map(() => []);
  for (const edge of graph.edges) found[edge.head].push(edge);
  return found;
}

/** @param {import("./types.js").GraphNode} node @returns {Filter | null} */
function filterOfNode(node) {
  if (node.kind === "parameter" || node.kind === "buffer") return "parameters";
  if (node.kind === "constant") return "constants";
  return node.kind === "op" && node.status === "ok" && SHAPE_ONLY.has(node.op ?? "") ? "shapeOnly" : null;
}

/**
 * Nodes on no path to an output. A pass that failed has no outputs yet, so nothing can be called dead.
 *
 * @param {Graph} graph
 * @param {GraphEdge[][]} inEdges
 * @returns {Uint8Array}
 */
function deadNodes(graph, inEdges) {
  const isDead = new Uint8Array(graph.nodes.length);
  if (graph.error !== null || graph.outputs.length === 0) return isDead;
  isDead.fill(1);
  const stack = [...graph.outputs];
  for (const id of stack) isDead[id] = 0;
  while (stack.length > 0) {
    for (const { tail } of inEdges[/** @type {number} */ (stack.pop())]) {
      if (isDead[tail] === 0) continue;
      isDead[tail] = 0;
      stack.push(tail);
    }
  }
  for (const node of graph.nodes) if (node.kind === "input" || node.kind === "output") isDead[node.id] = 0;
  return isDead;
}

/**
 * @param {Graph} graph
 * @returns {{flow: number[][], state: number[][], size: number[]}}
 */
function childrenOf(graph) {
  const { calls, nodes } = graph;
  const start = calls.map(() => Infinity);
  const end = calls.map(() => -1);
  const size = calls.map(() => 0);
  for (const node of nodes) {
    if (node.kind !== "op" && node.kind !== "opaque") continue;
    for (let at = node.call; at !== null; at = calls[at].parent) {
      if (start[at] === Infinity) start[at] = node.id;
      end[at] = node.id;
      size[at] += 1;
    }
  }
  placeEmptyCalls(graph, start, end);
  /** @type {[number, number][][]} */
  const keyed = calls.map(() => []);
  /** @type {number[][]} */
  const state = calls.map(() => []);
  for (const node of nodes) {
    const scope = node.call ?? 0;
    if (node.kind === "parameter" || node.kind === "buffer" || node.kind === "constant") state[scope].push(node.id);
    else keyed[scope].push([orderOf(node, nodes.length), node.id]);
  }
  for (const call of calls) if (call.parent !== null) keyed[call.parent].push([start[call.id], ~call.id]);
  const flow = keyed.map((list) => list.sort((a, b) => a[0] - b[0]).map(([, child]) => child));
  return { flow, state, size };
}

/** @type {(node: import("./types.js").GraphNode, count: number) => number} inputs first, outputs last */
function orderOf(node, count) {
  if (node.kind === "input") return node.id - count;
  return node.kind === "output" ? node.id + count : node.id;
}

/**
 * A call without operations comes after its elder sibling; one that failed before its first operation comes last.
 *
 * @param {Graph} graph
 * @param {number[]} start filled in
 * @param {number[]} end
 */
function placeEmptyCalls(graph, start, end) {
  const lastOf = graph.calls.map(() => -0.5);
  for (const call of graph.calls) {
    if (call.parent === null) continue;
    if (start[call.id] === Infinity) {
      start[call.id] = call.status === "failed" ? graph.nodes.length - 0.5 : lastOf[call.parent] + 0.25;
    }
    lastOf[call.parent] = Math.max(end[call.id], start[call.id]);
  }
}
