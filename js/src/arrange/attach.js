/**
 * Where edges touch the children they connect: one place per tensor, so that parallel tensors can be told apart. Pure.
 *
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 * @typedef {import("./arrange.js").Block} Block
 * @typedef {import("../engine/ranks.js").Solution} Solution
 * @typedef {import("./rails.js").Lanes} Lanes
 */

const SPACING = 14;
const MIN_SPACING = 6;
/** Room from the outermost edge to the corner of a child. */
const INSET = 14;
const ROUND_INSET = 3;

/** An edge that is off by less than this is drawn straight. */
const SNAP = 4;

/**
 * @param {ScopeTask} task
 * @param {Solution} solution
 * @param {(end: number, isTail: boolean) => number} nodeOf
 * @returns {{tails: number[], heads: number[]}} per edge: x of the port, or of the middle of the child, at either end
 */
export function plainEnds(task, solution, nodeOf) {
  const { blocks, edges } = task;
  return {
    tails: edges.map(({ tail, tailPort }) => {
      const dx = tailPort < 0 ? 0 : (blocks[tail].outDx?.[tailPort] ?? 0);
      return solution.xs[nodeOf(tail, true)] + dx;
    }),
    heads: edges.map(({ head, headPort }) => {
      const dx = headPort < 0 ? 0 : (blocks[head].inDx?.[headPort] ?? 0);
      return solution.xs[nodeOf(head, false)] + dx;
    }),
  };
}

/**
 * @param {ScopeTask} task
 * @param {{tails: number[], heads: number[]}} plain
 * @param {Solution} solution
 * @param {number[][]} bends
 * @param {Lanes} lanes
 * @returns {{tailX: number[], headX: number[]}} per edge
 */
export function spreadAttachments(task, plain, solution, bends, lanes) {
  const tailX = [...plain.tails];
  const headX = [...plain.heads];
  /** @type {(at: number, isTail: boolean) => number} the x that the edge has where it next turns */
  const nextX = (at, isTail) => {
    const lane = lanes.byEdge[at];
    if (lane) return lane.x;
    const line = bends[at];
    if (line.length > 0) return isTail ? line[0] : line[line.length - 1];
    return isTail ? plain.heads[at] : tailX[at];
  };
  for (const isTail of [true, false]) {
    const target = isTail ? tailX : headX;
    for (const [node, groups] of groupsByNode(task, isTail)) {
      const wishes = groups.map((edges) => edges.reduce((sum, at) => sum + nextX(at, isTail), 0) / edges.length);
      // Of two children that face each other only one moves its end to meet the other's, else they would miss again.
      const isFree = groups.map((edges) => !isTail || edges.some((at) => bends[at].length > 0 || isFixed(task, at)));
      const places = spread(task.blocks[node], solution.xs[node], wishes, isFree);
      groups.forEach((edges, i) => edges.forEach((at) => (target[at] = places[i])));
    }
  }
  return { tailX, headX };
}

/** @type {(task: ScopeTask, at: number) => boolean} whether the head of the edge is a port, which does not move */
const isFixed = (task, at) => task.edges[at].head < 0 || task.edges[at].headPort >= 0;

/** @type {(task: ScopeTask, isTail: boolean) => Map<number, number[][]>} per closed child: its edges, those of a tensor together */
function groupsByNode(task, isTail) {
  /** @type {Map<number, Map<number, number[]>>} */
  const found = new Map();
  task.edges.forEach((edge, at) => {
    const node = isTail ? edge.tail : edge.head;
    if (node < 0 || (isTail ? edge.tailPort : edge.headPort) >= 0) return;
    const byTensor = found.get(node) ?? new Map();
    found.set(node, byTensor);
    const edges = byTensor.get(edge.tensor);
    if (edges) edges.push(at);
    else byTensor.set(edge.tensor, [at]);
  });
  return new Map([...found].map(([node, byTensor]) => [node, [...byTensor.values()]]));
}

/** @type {(block: Block, middle: number, wishes: number[], isFree: boolean[]) => number[]} */
function spread(block, middle, wishes, isFree) {
  const isNear = wishes.map((wish) => Math.abs(wish - middle) < SNAP);
  if (wishes.length === 1) return [isNear[0] && isFree[0] ? wishes[0] : middle];
  const order = wishes.map((_, i) => i).sort((a, b) => wishes[a] - wishes[b]);
  const inset = block.isRound ? Math.max(ROUND_INSET, Math.min(INSET, block.width / 2 - 10)) : INSET;
  const even = Math.min(SPACING, Math.max(2, (block.width - 2 * inset) / (wishes.length - 1)));
  // An edge that comes straight down stays straight, if the others find room beside it.
  const straight = order.findIndex((i) => isNear[i]);
  const beside = Math.max(straight, wishes.length - 1 - straight);
  const tight = Math.min(even, (block.width / 2 - ROUND_INSET) / beside);
  const isAnchored = straight >= 0 && tight >= MIN_SPACING;
  const spacing = isAnchored ? tight : even;
  const anchor = isAnchored ? straight : (wishes.length - 1) / 2;
  const shift = isAnchored && isFree[order[straight]] ? wishes[order[straight]] - middle : 0;
  const places = new Array(wishes.length).fill(middle);
  order.forEach((i, at) => (places[i] = middle + shift + (at - anchor) * spacing));
  return places;
}
