/**
 * Gutters: a tensor that many far readers share (a mask, a rotary table) runs down beside the children instead of through
 * them, where it would need a lane on every rank. Pure.
 *
 * @typedef {import("./engine/ranks.js").Problem} Problem
 * @typedef {import("./arrange.js").BlockEdge} BlockEdge
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 *
 * @typedef {{x: number, leave: number, arrive: number}} Lane leave: px below the tail's band, arrive: px above the head's
 * @typedef {Object} Lanes
 * @property {(Lane | null)[]} byEdge
 * @property {number[]} leaving per rank: rails that turn in the gap below it
 * @property {number[]} arriving per rank: rails that turn in the gap above it
 * @property {number} left of all lanes; Infinity if there is none
 * @property {number} right
 */

/** Ranks that a far reader is away, and how many of those make a rail. */
const FAR = 4;
const MANY = 4;
/** However few its readers, an edge this long would cost an engine more than it gains. */
const VERY_FAR = 40;

const LANE_STEP = 11;
const LANE_MARGIN = 16;
const LEAVE = 9;
const ARRIVE = 13;
const STEP = 7;

/**
 * @param {Problem} problem
 * @param {BlockEdge[]} edges
 * @param {number[]} ranks
 * @param {boolean[]} isReversed
 * @returns {boolean[]} per edge: whether it runs in a gutter
 */
export function chooseRails(problem, edges, ranks, isReversed) {
  const isRail = [...isReversed];
  /** @type {Map<string, number[]>} */
  const readers = new Map();
  edges.forEach((edge, at) => {
    if (isReversed[at]) return;
    const key = `${edge.tail} ${edge.tensor}`;
    const list = readers.get(key);
    if (list) list.push(at);
    else readers.set(key, [at]);
  });
  const length = (/** @type {number} */ at) => ranks[problem.edges[at].head] - ranks[problem.edges[at].tail];
  for (const list of readers.values()) {
    const far = list.filter((at) => length(at) > FAR);
    if (far.length >= MANY) {
      // One edge stays with the engine: it keeps the readers below what they read.
      const byLength = [...list].sort((a, b) => length(a) - length(b));
      for (const at of byLength.slice(1)) isRail[at] = true;
    }
    for (const at of list)
      if (length(at) > VERY_FAR && problem.kinds[problem.edges[at].tail] === "in") isRail[at] = true;
  }
  return isRail;
}

/**
 * @param {ScopeTask} task
 * @param {number[]} ranks those of the finished solution
 * @param {boolean[]} isRail
 * @param {(end: number, isTail: boolean) => number} nodeOf
 * @param {(node: number) => number} xOf
 * @param {{left: number, right: number}} extent of what the gutters run beside
 * @returns {Lanes}
 */
export function railLanes(task, ranks, isRail, nodeOf, xOf, extent) {
  const count = ranks.reduce((most, rank) => Math.max(most, rank + 1), 0);
  /** @type {Lanes} */
  const lanes = {
    byEdge: task.edges.map(() => null),
    leaving: new Array(count + 1).fill(0),
    arriving: new Array(count + 1).fill(0),
    left: Infinity,
    right: -Infinity,
  };
  /** @type {{left: number[], right: number[]}} per side and lane: the last rank that it is taken on */
  const taken = { left: [], right: [] };
  for (const { edges, first, last, tail } of railGroups(task, ranks, isRail, nodeOf)) {
    const heads = edges.map((at) => xOf(nodeOf(task.edges[at].head, false)));
    const side = xOf(tail) > heads.reduce((sum, x) => sum + x, 0) / heads.length + 1 ? "right" : "left";
    let lane = taken[side].findIndex((end) => end < first);
    if (lane < 0) lane = taken[side].length;
    taken[side][lane] = last;
    const offset = LANE_MARGIN + lane * LANE_STEP;
    const x = side === "left" ? extent.left - offset : extent.right + offset;
    const leave = LEAVE + STEP * lanes.leaving[ranks[tail]];
    lanes.leaving[ranks[tail]] += 1;
    for (const at of edges) {
      const rank = ranks[nodeOf(task.edges[at].head, false)];
      lanes.byEdge[at] = { x, leave, arrive: ARRIVE + STEP * lanes.arriving[rank] };
      lanes.arriving[rank] += 1;
    }
    lanes.left = Math.min(lanes.left, x);
    lanes.right = Math.max(lanes.right, x);
  }
  return lanes;
}

/** @type {(task: ScopeTask, ranks: number[], isRail: boolean[], nodeOf: (end: number, isTail: boolean) => number) =>
 *   {edges: number[], first: number, last: number, tail: number}[]} rails by tensor, those that start first come first */
function railGroups(task, ranks, isRail, nodeOf) {
  /** @type {Map<string, {edges: number[], first: number, last: number, tail: number}>} */
  const groups = new Map();
  task.edges.forEach((edge, at) => {
    if (!isRail[at]) return;
    const tail = nodeOf(edge.tail, true);
    const span = [ranks[tail], ranks[nodeOf(edge.head, false)]];
    const key = `${edge.tail} ${edge.tensor}`;
    const group = groups.get(key) ?? { edges: [], first: Infinity, last: -Infinity, tail };
    group.edges.push(at);
    group.first = Math.min(group.first, ...span);
    group.last = Math.max(group.last, ...span);
    groups.set(key, group);
  });
  return [...groups.values()].sort((a, b) => a.first - b.first);
}
