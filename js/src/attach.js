/**
 * Where edges touch the children they connect: one place per tensor, so that parallel tensors can be told apart. Pure.
 *
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 * @typedef {import("./arrange.js").Block} Block
 * @typedef {import("./engine/ranks.js").Solution} Solution
 * @typedef {import("./rails.js").Lanes} Lanes
 */

const SPACING = 16;
/** Room from the outermost edge to the corner of a child. */
const INSET = 14;
const ROUND_INSET = 4;

/**
 * @param {ScopeTask} task
 * @param {Solution} solution
 * @param {number[][]} bends
 * @param {Lanes} lanes
 * @param {(end: number, isTail: boolean) => number} nodeOf
 * @returns {{tailX: number[], headX: number[]}} per edge
 */
export function spreadAttachments(task, solution, bends, lanes, nodeOf) {
  const { xs } = solution;
  const fixedX = (/** @type {number} */ at, /** @type {boolean} */ isTail) => {
    const edge = task.edges[at];
    const end = isTail ? edge.tail : edge.head;
    const port = isTail ? edge.tailPort : edge.headPort;
    const dx = end < 0 || port < 0 ? 0 : ((isTail ? task.blocks[end].outDx : task.blocks[end].inDx)?.[port] ?? 0);
    return xs[nodeOf(end, isTail)] + dx;
  };
  const tailX = task.edges.map((_, at) => fixedX(at, true));
  const headX = task.edges.map((_, at) => fixedX(at, false));
  const plainTail = [...tailX];
  const plainHead = [...headX];
  /** @type {(at: number, isTail: boolean) => number} the x that the edge has where it next turns */
  const nextX = (at, isTail) => {
    const lane = lanes.byEdge[at];
    if (lane) return lane.x;
    const line = bends[at];
    if (line.length > 0) return isTail ? line[0] : line[line.length - 1];
    return isTail ? plainHead[at] : plainTail[at];
  };
  for (const isTail of [true, false]) {
    const target = isTail ? tailX : headX;
    for (const [node, groups] of groupsByNode(task, isTail)) {
      const wishes = groups.map((edges) => edges.reduce((sum, at) => sum + nextX(at, isTail), 0) / edges.length);
      const places = spread(task.blocks[node], xs[node], wishes);
      groups.forEach((edges, i) => edges.forEach((at) => (target[at] = places[i])));
    }
  }
  return { tailX, headX };
}

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

/** @type {(block: Block, middle: number, wishes: number[]) => number[]} */
function spread(block, middle, wishes) {
  if (wishes.length === 1) return [middle];
  const order = wishes.map((_, i) => i).sort((a, b) => wishes[a] - wishes[b]);
  const room = block.width - 2 * (block.isRound ? Math.max(ROUND_INSET, Math.min(INSET, block.width / 2 - 10)) : INSET);
  const spacing = Math.min(SPACING, Math.max(2, room / (wishes.length - 1)));
  // An edge that comes straight down stays straight, if the others find room beside it.
  const straight = order.findIndex((i) => Math.abs(wishes[i] - middle) < 1);
  const half = (wishes.length - 1) / 2;
  const isRoomy =
    straight >= 0 && Math.max(straight, wishes.length - 1 - straight) * spacing <= block.width / 2 - ROUND_INSET;
  const anchor = isRoomy ? straight : half;
  const places = new Array(wishes.length).fill(middle);
  order.forEach((i, at) => (places[i] = middle + (at - anchor) * spacing));
  return places;
}
