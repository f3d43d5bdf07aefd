/**
 * What an engine is asked and what it answers, and the ranks of a layered drawing. Pure, linear.
 *
 * An engine decides on ranks and on x; everything vertical, the curves and the labels are placed afterwards (arrange.js),
 * so that both engines draw alike and no curve leaves the room that its rank leaves it.
 *
 * @typedef {{tail: number, head: number, tailDx: number, headDx: number, weight: number}} ProblemEdge ends as indices of
 *   nodes; dx: where it touches the node, from the middle, in px; weight: how much it matters that it is straight
 *
 * @typedef {Object} Problem
 * @property {("box"|"in"|"out")[]} kinds per node: a child of the scope, or a port on its upper or lower border
 * @property {number[]} widths px
 * @property {number[]} heights px
 * @property {ProblemEdge[]} edges
 *
 * @typedef {Object} Solution
 * @property {number[]} ranks per node, from 0; ports in have a rank of their own before all boxes, ports out one after
 * @property {number[]} xs middle of each node in px
 * @property {number[][]} bends per edge: its x at each rank strictly between its ends, from tail to head
 */

const MANY_READERS = 4;

/**
 * @param {Problem} problem
 * @returns {{ranks: number[], isReversed: boolean[]}} isReversed: per edge, whether it closes a cycle and is drawn upwards
 */
export function assignRanks(problem) {
  const { kinds, edges } = problem;
  const order = topologicalOrder(problem);
  const place = kinds.map(() => 0);
  order.forEach((node, at) => (place[node] = at));
  const isReversed = edges.map(({ tail, head }) => place[tail] > place[head]);
  /** @type {number[][]} */
  const before = kinds.map(() => []);
  /** @type {number[][]} */
  const after = kinds.map(() => []);
  edges.forEach(({ tail, head }, at) => {
    const [upper, lower] = isReversed[at] ? [head, tail] : [tail, head];
    before[lower].push(upper);
    after[upper].push(lower);
  });
  const first = kinds.includes("in") ? 1 : 0;
  const ranks = kinds.map(() => 0);
  for (const node of order) {
    if (kinds[node] === "in") continue;
    ranks[node] = before[node].reduce((rank, other) => Math.max(rank, ranks[other] + 1), first);
  }
  const last = kinds.reduce((rank, kind, node) => (kind === "out" ? rank : Math.max(rank, ranks[node])), 0) + 1;
  kinds.forEach((kind, node) => {
    if (kind === "out") ranks[node] = last;
  });
  pullDown({ order, kinds, before, after, ranks });
  return { ranks, isReversed };
}

/**
 * Moves what feeds more than it reads down to its readers: constants and masks beside where they are used. To read what
 * many others read too costs next to nothing: that runs down to all of them anyway.
 *
 * @param {{order: number[], kinds: Problem["kinds"], before: number[][], after: number[][], ranks: number[]}} graph its
 *   ranks get changed
 */
function pullDown({ order, kinds, before, after, ranks }) {
  const costOf = (/** @type {number} */ tail) => (after[tail].length >= MANY_READERS ? 1 / after[tail].length : 1);
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const node = order[at];
    if (kinds[node] !== "box") continue;
    const cost = before[node].reduce((sum, tail) => sum + costOf(tail), 0);
    if (after[node].length <= cost) continue;
    const room = after[node].reduce((rank, other) => Math.min(rank, ranks[other] - 1), Infinity);
    if (room > ranks[node]) ranks[node] = room;
  }
}

/**
 * @param {Problem} problem
 * @returns {number[]} nodes, each after what it reads as far as there is no cycle, otherwise in the given order
 */
function topologicalOrder(problem) {
  const { kinds, edges } = problem;
  const open = kinds.map(() => 0);
  /** @type {number[][]} */
  const after = kinds.map(() => []);
  for (const { tail, head } of edges) {
    after[tail].push(head);
    open[head] += 1;
  }
  const isDone = kinds.map(() => false);
  /** @type {number[]} */
  const order = [];
  /** @type {number[]} */
  const ready = [];
  const finish = (/** @type {number} */ node) => {
    isDone[node] = true;
    order.push(node);
    for (const head of after[node]) {
      open[head] -= 1;
      if (open[head] === 0 && !isDone[head]) ready.push(head);
    }
  };
  for (let node = 0; node < kinds.length; node += 1) if (open[node] === 0) ready.push(node);
  let next = 0;
  let scan = 0;
  while (order.length < kinds.length) {
    if (next < ready.length) {
      const node = ready[next++];
      if (!isDone[node]) finish(node);
      continue;
    }
    // Only a cycle is left: the earliest node breaks it.
    while (isDone[scan]) scan += 1;
    finish(scan);
  }
  return order;
}
