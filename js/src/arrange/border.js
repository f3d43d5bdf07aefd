/**
 * The sides of a scope and the ports on its upper and lower border. Pure.
 *
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 * @typedef {import("../engine/ranks.js").Solution} Solution
 */

/** Room in px between what is inside and the border. */
export const PADDING = 16;
export const TOP_PADDING = 24;
const PORT_SPACING = 14;
/** Up to this half width a scope has its axis in the middle; a wider one may lean to one side. */
const EVEN_HALF_WIDTH = 210;

/**
 * Moves ports over what they feed and below what feeds them. Engines set ports apart like children; here, where nothing
 * else is on their rank, they may stand closer.
 *
 * @param {ScopeTask} task
 * @param {Solution} solution
 * @param {{bends: number[][], tailX: number[], headX: number[]}} routes per edge; the ends at ports get moved along
 * @returns {Solution}
 */
export function settlePorts(task, solution, { bends, tailX, headX }) {
  const xs = [...solution.xs];
  for (const isIn of [true, false]) {
    const count = isIn ? task.ins : task.outs;
    const first = task.blocks.length + (isIn ? 0 : task.ins);
    /** @type {{direct: number[], other: number[]}[]} */
    const targets = Array.from({ length: count }, () => ({ direct: [], other: [] }));
    task.edges.forEach(({ tail, head }, at) => {
      const end = isIn ? tail : head;
      if (end >= 0) return;
      const line = bends[at];
      if (line.length > 0) targets[~end].other.push(isIn ? line[0] : line[line.length - 1]);
      else targets[~end].direct.push(isIn ? headX[at] : tailX[at]);
    });
    const order = targets.map((_, port) => port).sort((a, b) => xs[first + a] - xs[first + b]);
    const wishes = order.map((port) => {
      const { direct, other } = targets[port];
      const near = direct.length > 0 ? direct : other;
      return near.length > 0 ? near.sort((a, b) => a - b)[Math.floor((near.length - 1) / 2)] : xs[first + port];
    });
    separate(wishes, PORT_SPACING).forEach((x, at) => (xs[first + order[at]] = x));
  }
  task.edges.forEach(({ tail, head }, at) => {
    if (tail < 0) tailX[at] = xs[task.blocks.length + ~tail];
    if (head < 0) headX[at] = xs[task.blocks.length + task.ins + ~head];
  });
  return { ...solution, xs };
}

/** @type {(wishes: number[], spacing: number) => number[]} in the given order, spaced, with the least squared distance to the wishes */
function separate(wishes, spacing) {
  /** @type {{sum: number, count: number}[]} */
  const blocks = [];
  wishes.forEach((wish, at) => {
    let block = { sum: wish - at * spacing, count: 1 };
    while (blocks.length > 0 && mean(blocks[blocks.length - 1]) > mean(block)) {
      const before = /** @type {typeof block} */ (blocks.pop());
      block = { sum: before.sum + block.sum, count: before.count + block.count };
    }
    blocks.push(block);
  });
  return blocks.flatMap((block) => new Array(block.count).fill(mean(block))).map((x, at) => x + at * spacing);
}

/** @type {(block: {sum: number, count: number}) => number} */
const mean = ({ sum, count }) => sum / count;

/** @type {(task: ScopeTask, solution: Solution, side: "in"|"out") => number[]} x inside the scope, per port */
export function portXs(task, solution, side) {
  const start = task.blocks.length + (side === "in" ? 0 : task.ins);
  return solution.xs.slice(start, start + (side === "in" ? task.ins : task.outs));
}

/**
 * Places of ports on the border. That of the main line is on the axis: with it on the same x above and below, stacked
 * scopes stay in one column. The others go where they lead to, as far as the border has room.
 *
 * @param {number[]} xs inside
 * @param {number} axis
 * @param {number} left bounds
 * @param {number} right
 * @returns {number[]}
 */
function borderXs(xs, axis, left, right) {
  const order = xs.map((_, port) => port).sort((a, b) => xs[a] - xs[b]);
  const main = order.indexOf(0);
  const result = new Array(xs.length).fill(axis);
  for (let at = main - 1; at >= 0; at -= 1) {
    const most = result[order[at + 1]] - PORT_SPACING;
    result[order[at]] = Math.min(most, Math.max(xs[order[at]], left + at * PORT_SPACING));
  }
  for (let at = main + 1; at < order.length; at += 1) {
    const least = result[order[at - 1]] + PORT_SPACING;
    result[order[at]] = Math.max(least, Math.min(xs[order[at]], right - (order.length - 1 - at) * PORT_SPACING));
  }
  return result;
}

/**
 * @typedef {Object} Border the sides of a scope and its ports, x as the engine has it
 * @property {number} left
 * @property {number} right
 * @property {number} axis
 * @property {number[]} ins
 * @property {number[]} outs
 * @property {boolean} isStraightIn whether all ports in lie above the place they lead to
 * @property {boolean} isStraightOut
 *
 * @param {ScopeTask} task
 * @param {Solution} solution
 * @param {{left: number, right: number}} content
 * @returns {Border}
 */
export function borderOf(task, solution, content) {
  const inside = { ins: portXs(task, solution, "in"), outs: portXs(task, solution, "out") };
  let { left, right } = content;
  for (const x of [...inside.ins, ...inside.outs]) {
    left = Math.min(left, x);
    right = Math.max(right, x);
  }
  const padding = task.headerHeight > 0 ? PADDING : TOP_PADDING;
  const axis = inside.ins[0] ?? inside.outs[0] ?? (left + right) / 2;
  let before = axis - left + padding;
  let after = right - axis + padding;
  if (task.headerHeight > 0) {
    // Edges come in right of the title.
    const leftPorts = inside.ins.filter((x) => x < axis - 1).length;
    const portRoom = inside.ins.length === 0 ? 0 : (leftPorts + 1) * PORT_SPACING;
    if (inside.ins.length === 0) after = Math.max(after, task.titleWidth + PADDING - before);
    else before = Math.max(before, task.titleWidth + portRoom);
    const even = Math.min(Math.max(before, after), EVEN_HALF_WIDTH);
    before = Math.max(before, even);
    after = Math.max(after, even);
  }
  [left, right] = [axis - before, axis - before + Math.ceil(before + after)];
  const ins = borderXs(inside.ins, axis, left + task.titleWidth + PORT_SPACING, right - PORT_SPACING);
  const outs = borderXs(inside.outs, axis, left + PORT_SPACING, right - PORT_SPACING);
  const isStraight = (/** @type {number[]} */ border, /** @type {number[]} */ xs) =>
    xs.every((x, port) => Math.abs(x - border[port]) < 1);
  return {
    left,
    right,
    axis,
    ins,
    outs,
    isStraightIn: isStraight(ins, inside.ins),
    isStraightOut: isStraight(outs, inside.outs),
  };
}
