/**
 * A layered layout in plain JavaScript (after Sugiyama, Tagawa and Toda, 1981): the fallback when Graphviz can't run, the
 * engine for scopes too large for it, and the instant first paint. Pure, close to linear.
 *
 * @typedef {import("./ranks.js").Problem} Problem
 * @typedef {import("./ranks.js").Solution} Solution
 *
 * @typedef {Object} Layers the graph with a dummy node on every rank that an edge passes
 * @property {number} count of nodes, dummies included
 * @property {number[]} widths
 * @property {number[][]} rows nodes by rank, from left to right
 * @property {Arc[][]} up per node: arcs from the rank above
 * @property {Arc[][]} down per node: arcs to the rank below
 * @property {number[][]} chains per edge: its dummies, from the upper end to the lower
 * @typedef {{other: number, dx: number, port: number, ownPort: number, weight: number}} Arc dx: what to add to the other's x
 *   for a straight line; port: where it touches the other, from its middle; ownPort: likewise on this side
 */
import { assignRanks } from "./ranks.js";
import { orderRows } from "./order.js";
import { tighten } from "./tighten.js";

const NODE_SEPARATION = 26;
const LANE_SEPARATION = 16;
const LANE_WIDTH = 2;
const PLACE_ROUNDS = 4;
/** Straightness counts most between dummies, else long edges would wiggle, and least where they end. */
const WEIGHT = { mixed: 1, dummy: 16 };

/**
 * @param {Problem} problem
 * @returns {Solution & {crossings: number}}
 */
export function solveSimply(problem) {
  const chain = solveChain(problem);
  if (chain) return chain;
  const { ranks, isReversed } = assignRanks(problem);
  const layers = buildLayers(problem, ranks, isReversed);
  const crossings = orderRows(layers);
  const xs = placeNodes(layers, problem.kinds.length);
  const bends = layers.chains.map((chain, at) => {
    const line = chain.map((node) => xs[node]);
    return isReversed[at] ? line.reverse() : line;
  });
  return { ranks, xs: xs.slice(0, problem.kinds.length), bends, crossings };
}

/** @type {(problem: Problem) => (Solution & {crossings: number}) | null} null where it is more than one chain */
function solveChain({ kinds, edges }) {
  if (edges.length !== kinds.length - 1) return null;
  const after = new Map(edges.map((edge) => [edge.tail, edge]));
  const heads = new Set(edges.map(({ head }) => head));
  let node = kinds.findIndex((_, at) => !heads.has(at));
  if (node < 0) return null;
  const ranks = new Array(kinds.length).fill(0);
  const xs = new Array(kinds.length).fill(0);
  let rank = 0;
  for (let edge = after.get(node); edge && rank < edges.length; edge = after.get(node)) {
    xs[edge.head] = xs[node] + edge.tailDx - edge.headDx;
    node = edge.head;
    rank += 1;
    ranks[node] = rank;
  }
  return rank === edges.length ? { ranks, xs, bends: edges.map(() => []), crossings: 0 } : null;
}

/** @type {(problem: Problem, ranks: number[], isReversed: boolean[]) => Layers} */
function buildLayers(problem, ranks, isReversed) {
  const widths = [...problem.widths];
  const rowOf = [...ranks];
  /** @type {Arc[][]} */
  const up = widths.map(() => []);
  /** @type {Arc[][]} */
  const down = widths.map(() => []);
  const connect = (
    /** @type {number} */ upper,
    /** @type {number} */ lower,
    /** @type {number} */ upperDx,
    /** @type {number} */ lowerDx,
    /** @type {number} */ weight,
  ) => {
    const dx = upperDx - lowerDx;
    down[upper].push({ other: lower, dx: -dx, port: lowerDx, ownPort: upperDx, weight });
    up[lower].push({ other: upper, dx, port: upperDx, ownPort: lowerDx, weight });
  };
  const chains = problem.edges.map((edge, at) => {
    const [upper, lower] = isReversed[at] ? [edge.head, edge.tail] : [edge.tail, edge.head];
    const [upperDx, lowerDx] = isReversed[at] ? [edge.headDx, edge.tailDx] : [edge.tailDx, edge.headDx];
    /** @type {number[]} */
    const chain = [];
    for (let rank = ranks[upper] + 1; rank < ranks[lower]; rank += 1) {
      chain.push(widths.length);
      widths.push(LANE_WIDTH);
      rowOf.push(rank);
      up.push([]);
      down.push([]);
    }
    const stops = [upper, ...chain, lower];
    for (let i = 1; i < stops.length; i += 1) {
      const isFirst = i === 1;
      const isLast = i === stops.length - 1;
      const weight = isFirst && isLast ? edge.weight : isFirst || isLast ? WEIGHT.mixed : WEIGHT.dummy;
      connect(stops[i - 1], stops[i], isFirst ? upperDx : 0, isLast ? lowerDx : 0, weight);
    }
    return chain;
  });
  /** @type {number[][]} */
  const rows = [];
  rowOf.forEach((rank, node) => {
    while (rows.length <= rank) rows.push([]);
    rows[rank].push(node);
  });
  return { count: widths.length, widths, rows, up, down, chains };
}

/**
 * @param {Layers} layers rows in their final order
 * @param {number} realCount nodes with a smaller number are no dummies
 * @returns {number[]} x of the middle of each node
 */
function placeNodes(layers, realCount) {
  const { rows, widths } = layers;
  const gapAfter = (/** @type {number} */ left, /** @type {number} */ right) => {
    const isLane = left >= realCount && right >= realCount;
    return (widths[left] + widths[right]) / 2 + (isLane ? LANE_SEPARATION : NODE_SEPARATION);
  };
  const xs = new Array(layers.count).fill(0);
  for (const row of rows) packRow(row, gapAfter, xs);
  for (let round = 0; round < PLACE_ROUNDS; round += 1) {
    const before = [...xs];
    for (const row of rows) placeRow(row, [layers.up], gapAfter, xs);
    for (let rank = rows.length - 1; rank >= 0; rank -= 1) placeRow(rows[rank], [layers.down], gapAfter, xs);
    if (xs.every((x, node) => x === before[node])) break;
  }
  for (const row of rows) placeRow(row, [layers.up, layers.down], gapAfter, xs);
  for (let rank = rows.length - 1; rank >= 0; rank -= 1) placeRow(rows[rank], [layers.up, layers.down], gapAfter, xs);
  for (const row of rows) placeRow(row, [layers.up, layers.down], gapAfter, xs);
  tighten(layers, gapAfter, xs);
  return xs;
}

/** @type {(row: number[], gapAfter: (left: number, right: number) => number, xs: number[]) => void} centred around 0 */
function packRow(row, gapAfter, xs) {
  let x = 0;
  row.forEach((node, at) => {
    if (at > 0) x += gapAfter(row[at - 1], node);
    xs[node] = x;
  });
  for (const node of row) xs[node] -= x / 2;
}

/**
 * Puts each node of a row as near to its neighbours as the row allows: least sum of weighted distances, order kept, by
 * pooling adjacent violators with weighted medians.
 *
 * @type {(row: number[], arcs: Arc[][][], gapAfter: (left: number, right: number) => number, xs: number[]) => void}
 */
function placeRow(row, arcs, gapAfter, xs) {
  /** @type {{first: number, last: number, wishes: {at: number, weight: number}[], at: number}[]} */
  const blocks = [];
  /** @type {number[]} */
  const offsets = [];
  let offset = 0;
  row.forEach((node, place) => {
    if (place > 0) offset += gapAfter(row[place - 1], node);
    offsets.push(offset);
    /** @type {{at: number, weight: number}[]} */
    const wishes = [];
    for (const table of arcs) {
      for (const { other, dx, weight } of table[node]) wishes.push({ at: xs[other] + dx - offset, weight });
    }
    if (wishes.length === 0) wishes.push({ at: xs[node] - offset, weight: 0.01 });
    let block = { first: place, last: place, wishes, at: weightedMedian(wishes) };
    while (blocks.length > 0 && blocks[blocks.length - 1].at > block.at) {
      const before = /** @type {typeof block} */ (blocks.pop());
      const pooled = before.wishes.concat(block.wishes);
      block = { first: before.first, last: block.last, wishes: pooled, at: weightedMedian(pooled) };
    }
    blocks.push(block);
  });
  for (const { first, last, at } of blocks) {
    for (let place = first; place <= last; place += 1) xs[row[place]] = at + offsets[place];
  }
}

/** @param {{at: number, weight: number}[]} wishes not empty; gets sorted @returns {number} the middle where two do equally well */
function weightedMedian(wishes) {
  if (wishes.length === 1) return wishes[0].at;
  wishes.sort((a, b) => a.at - b.at);
  const half = wishes.reduce((sum, { weight }) => sum + weight, 0) / 2;
  let passed = 0;
  for (let i = 0; i < wishes.length; i += 1) {
    passed += wishes[i].weight;
    if (passed > half) return wishes[i].at;
    if (passed === half) return (wishes[i].at + wishes[Math.min(i + 1, wishes.length - 1)].at) / 2;
  }
  return wishes[wishes.length - 1].at;
}
