/**
 * Gutters: a tensor that many far readers share (a mask, a rotary table), or a cable that many feed, runs down beside the
 * children instead of between them, where it would need a lane on every rank. Pure.
 *
 * @typedef {import("../engine/ranks.js").Problem} Problem
 * @typedef {import("./arrange.js").BlockEdge} BlockEdge
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 *
 * @typedef {{x: number, leave: number, arrive: number}} Lane leave: px below the tail's band, arrive: px above the head's
 * @typedef {{left: number, right: number}} Extent
 * @typedef {Object} Lanes
 * @property {(Lane | null)[]} byEdge
 * @property {number[]} leaving per rank: rails that turn in the gap below it
 * @property {number[]} arriving per rank: rails that turn in the gap above it
 * @property {number} left of all lanes; Infinity if there is none
 * @property {number} right
 */

/** An edge longer than this passes something; how many of those, of one tensor or cable, make a rail. */
const FAR = 1;
const MANY = 3;
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
  const length = (/** @type {number} */ at) => ranks[problem.edges[at].head] - ranks[problem.edges[at].tail];
  /** @type {Map<string, number[]>} */
  const shared = new Map();
  edges.forEach((edge, at) => {
    if (isReversed[at]) return;
    for (const key of [`from ${edge.tail} ${edge.tensor}`, `into ${edge.head} ${edge.tensor}`]) {
      const list = shared.get(key);
      if (list) list.push(at);
      else shared.set(key, [at]);
    }
    if (length(at) > VERY_FAR && problem.kinds[problem.edges[at].tail] === "in") isRail[at] = true;
  });
  for (const list of shared.values()) {
    if (list.filter((at) => length(at) > FAR).length < MANY) continue;
    // One edge stays with the engine: it keeps the readers below what they read.
    const byLength = [...list].sort((a, b) => length(a) - length(b));
    for (const at of byLength.slice(1)) isRail[at] = true;
  }
  return isRail;
}

/**
 * @param {ScopeTask} task
 * @param {number[]} ranks those of the finished solution
 * @param {boolean[]} isRail
 * @param {(end: number, isTail: boolean) => number} nodeOf
 * @param {(node: number) => number} xOf
 * @param {Extent[]} extents per rank: of what the gutters run beside
 * @returns {Lanes}
 */
export function railLanes(task, ranks, isRail, nodeOf, xOf, extents) {
  const count = ranks.reduce((most, rank) => Math.max(most, rank + 1), 0);
  /** @type {Lanes} */
  const lanes = {
    byEdge: task.edges.map(() => null),
    leaving: new Array(count + 1).fill(0),
    arriving: new Array(count + 1).fill(0),
    left: Infinity,
    right: -Infinity,
  };
  const middle =
    (extents.reduce((least, { left }) => Math.min(least, left), Infinity) +
      extents.reduce((most, { right }) => Math.max(most, right), -Infinity)) /
    2;
  const ends = task.edges.map((edge) => ({ tail: nodeOf(edge.tail, true), head: nodeOf(edge.head, false) }));
  const free = {
    left: extents.map(({ left }) => left - LANE_MARGIN),
    right: extents.map(({ right }) => right + LANE_MARGIN),
  };
  for (const { edges, first, last } of railGroups(task, ranks, isRail, nodeOf)) {
    const side =
      edges.reduce((sum, at) => sum + xOf(ends[at].tail) + xOf(ends[at].head) - 2 * middle, 0) > 0 ? "right" : "left";
    // It leaves below the first and arrives above the last; only one that goes back up passes these too.
    const isBack = edges.some((at) => ranks[ends[at].tail] >= ranks[ends[at].head]);
    const inset = isBack || last - first < 2 ? 0 : 1;
    const x = takeLane(free[side], side, first, last, inset);
    // All edges of a group turn at the same height where they leave or reach the end that they share.
    const leave = heightsAt(
      lanes.leaving,
      edges.map((at) => ranks[ends[at].tail]),
      LEAVE,
    );
    const arrive = heightsAt(
      lanes.arriving,
      edges.map((at) => ranks[ends[at].head]),
      ARRIVE,
    );
    edges.forEach((at, i) => (lanes.byEdge[at] = { x, leave: leave[i], arrive: arrive[i] }));
    lanes.left = Math.min(lanes.left, x);
    lanes.right = Math.max(lanes.right, x);
  }
  return lanes;
}

/**
 * A lane beside all that it passes, no further out.
 *
 * @param {number[]} free per rank: the innermost x that is free; moves outwards
 * @param {"left" | "right"} side
 * @param {number} first rank
 * @param {number} last
 * @param {0 | 1} inset ranks at each end that it does not pass
 * @returns {number} x
 */
function takeLane(free, side, first, last, inset) {
  const sign = side === "left" ? -1 : 1;
  let x = -Infinity;
  for (let rank = first + inset; rank <= last - inset; rank += 1) x = Math.max(x, sign * free[rank]);
  for (let rank = first; rank <= last; rank += 1) free[rank] = sign * Math.max(sign * free[rank], x + LANE_STEP);
  return sign * x;
}

/** @type {(used: number[], ranks: number[], first: number) => number[]} per rank given: px from the band; counts them in `used` */
function heightsAt(used, ranks, first) {
  const heights = ranks.map((rank) => first + STEP * used[rank]);
  for (const rank of new Set(ranks)) used[rank] += 1;
  return heights;
}

/** @type {(task: ScopeTask, ranks: number[], isRail: boolean[], nodeOf: (end: number, isTail: boolean) => number) =>
 *   {edges: number[], first: number, last: number}[]} rails that share a gutter: of one tensor from one
 *   child, or of a cable to one child; those that start first come first */
function railGroups(task, ranks, isRail, nodeOf) {
  /** @type {Map<string, number[]>} */
  const byTail = new Map();
  /** @type {Map<string, number[]>} */
  const byHead = new Map();
  /** @type {(map: Map<string, number[]>, key: string, at: number) => void} */
  const add = (map, key, at) => {
    const list = map.get(key);
    if (list) list.push(at);
    else map.set(key, [at]);
  };
  task.edges.forEach((edge, at) => {
    if (!isRail[at]) return;
    add(byTail, `${edge.tail} ${edge.tensor}`, at);
    add(byHead, `${edge.head} ${edge.tensor}`, at);
  });
  const isDone = new Set();
  const groups = [];
  for (const list of [...[...byHead.values()].filter((edges) => edges.length > 1), ...byTail.values()]) {
    const edges = list.filter((at) => !isDone.has(at));
    if (edges.length === 0) continue;
    for (const at of edges) isDone.add(at);
    const all = edges.flatMap((at) => [
      ranks[nodeOf(task.edges[at].tail, true)],
      ranks[nodeOf(task.edges[at].head, false)],
    ]);
    groups.push({ edges, first: minOf(all), last: -minOf(all.map((rank) => -rank)) });
  }
  return groups.sort((a, b) => a.first - b.first);
}

/** @param {number[]} values not empty; may be too many for an argument list @returns {number} */
const minOf = (values) => values.reduce((least, value) => Math.min(least, value));
