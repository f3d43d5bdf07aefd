/**
 * From ranks and x to a finished scope in px: rows, attachment points, curves, gutters, labels. Pure.
 *
 * Each rank has a band as high as its highest child. Edges run vertically inside bands and turn only in the gaps between
 * them, where no child is, so no edge can pass through a child.
 *
 * @typedef {import("./engine/ranks.js").Problem} Problem
 * @typedef {import("./engine/ranks.js").Solution} Solution
 *
 * @typedef {Object} Block a child as its scope sees it
 * @property {number} width
 * @property {number} height
 * @property {boolean} isRound half circles at its ends
 * @property {number[] | null} inDx of an open child: per port, where it is, from the middle of the upper border
 * @property {number[] | null} outDx likewise on the lower border
 *
 * @typedef {Object} BlockEdge
 * @property {number} tail block, or `~port` of a port in
 * @property {number} head block, or `~port` of a port out
 * @property {number} tailPort port of the tail if that is open, else -1
 * @property {number} headPort likewise
 * @property {number} tensor number of the tensor within the scope
 * @property {number} labelWidth 0 for no label
 *
 * @typedef {Object} ScopeTask
 * @property {Block[]} blocks
 * @property {number} ins ports in
 * @property {number} outs ports out
 * @property {BlockEdge[]} edges
 * @property {number} headerHeight 0 at the top level
 * @property {number} titleWidth what the title strip needs, from the left border
 *
 * @typedef {Object} Line
 * @property {number[]} points first point, then triples of control points
 * @property {boolean} isRail
 *
 * @typedef {Object} ScopeLayout all positions from the upper left corner of the scope
 * @property {number} width
 * @property {number} height
 * @property {number[]} xs left of each block
 * @property {number[]} ys top of each block
 * @property {number[]} inDx
 * @property {number[]} outDx
 * @property {Line[]} lines per edge
 * @property {({x: number, y: number} | null)[]} labels per edge; null where there is none or no room for one
 */
import { assignRanks } from "./engine/ranks.js";
import { LABEL_HEIGHT } from "./measure.js";
import { Pen } from "./pen.js";
import { chooseRails, railLanes } from "./rails.js";
import { spreadAttachments } from "./attach.js";
import { placeLabels } from "./labels.js";

/** Distances in px. */
const PADDING = 16;
const TOP_PADDING = 24;
const GAP = 26;
const LABEL_GAP = LABEL_HEIGHT + 20;
const CURVE_GAP = 32;
const WIDE_CURVE_GAP = 44;
const PORT_GAP = 15;
const PORT_CURVE_GAP = 28;
const JOG_HEIGHT = 18;
const RAIL_STEP = 7;
const PORT_SPACING = 14;
const EVEN_HALF_WIDTH = 210;
/** Room that a passing edge keeps from a child beside it. */
const CLEARANCE = 7;
/** Engines get no child higher than this: what is inside a child doesn't matter to its order. */
const PROXY_HEIGHT = 60;
const PORT_WIDTH = 10;

/**
 * @param {ScopeTask} task
 * @returns {{problem: Problem, railOf: boolean[], kept: number[]}} kept: edges of the task that the engine gets, in order
 */
export function toProblem(task) {
  const { blocks, ins, outs, edges } = task;
  const portNodes = ins + outs;
  /** @type {Problem} */
  const whole = {
    kinds: [...new Array(blocks.length).fill("box"), ...new Array(ins).fill("in"), ...new Array(outs).fill("out")],
    widths: [...blocks.map((block) => block.width), ...new Array(portNodes).fill(PORT_WIDTH)],
    heights: [...blocks.map((block) => Math.min(block.height, PROXY_HEIGHT)), ...new Array(portNodes).fill(0)],
    edges: edges.map((edge) => ({
      tail: edge.tail < 0 ? blocks.length + ~edge.tail : edge.tail,
      head: edge.head < 0 ? blocks.length + ins + ~edge.head : edge.head,
      tailDx: edge.tailPort < 0 ? 0 : portDx(blocks[edge.tail].outDx, edge.tailPort),
      headDx: edge.headPort < 0 ? 0 : portDx(blocks[edge.head].inDx, edge.headPort),
    })),
  };
  const { ranks, isReversed } = assignRanks(whole);
  const railOf = chooseRails(whole, edges, ranks, isReversed);
  const kept = edges.map((_, at) => at).filter((at) => !railOf[at]);
  return { problem: { ...whole, edges: kept.map((at) => whole.edges[at]) }, railOf, kept };
}


/** @type {(dx: number[] | null, port: number) => number} */
const portDx = (dx, port) => dx?.[port] ?? 0;

/**
 * @typedef {Object} Frame everything about a scope while it is being arranged; x is that of the engine
 * @property {ScopeTask} task
 * @property {Solution} solution
 * @property {boolean[]} railOf
 * @property {number[][]} bends per edge of the task
 * @property {number[]} tailX per edge: where it leaves its tail
 * @property {number[]} headX
 * @property {(end: number, isTail: boolean) => number} nodeOf
 * @property {number[]} tops of bands, per rank
 * @property {number[]} bottoms
 *
 * @param {ScopeTask} task
 * @param {Solution} solution
 * @param {boolean[]} railOf
 * @param {number[]} kept
 * @returns {ScopeLayout}
 */
export function arrange(task, solution, railOf, kept) {
  const { blocks, ins, edges } = task;
  /** @type {number[][]} */
  const bends = edges.map(() => []);
  kept.forEach((edge, at) => (bends[edge] = solution.bends[at]));
  const nodeOf = (/** @type {number} */ end, /** @type {boolean} */ isTail) =>
    end >= 0 ? end : blocks.length + ~end + (isTail ? 0 : ins);
  clearBands(task, solution, bends, nodeOf);
  const extent = blockExtent(task, solution, bends);
  const lanes = railLanes(task, solution.ranks, railOf, nodeOf, (node) => solution.xs[node], extent);
  const { tailX, headX } = spreadAttachments(task, solution, bends, lanes, nodeOf);
  const rows = stackRows(task, solution, bends, lanes, tailX, headX, nodeOf);
  const blockTops = blocks.map((block, at) => {
    const rank = solution.ranks[at];
    return rows.tops[rank] + (rows.bottoms[rank] - rows.tops[rank] - block.height) / 2;
  });
  const pen = new Pen(blocks, blockTops, solution, rows, nodeOf);
  const lines = edges.map((edge, at) => {
    const lane = lanes.byEdge[at];
    return lane ? pen.rail(edge, tailX[at], headX[at], lane) : pen.curve(edge, tailX[at], headX[at], bends[at]);
  });
  const labels = placeLabels({ task, lines, solution, blockTops, rows, tailX, headX, bends, nodeOf, isRail: railOf });
  return finish({ task, solution, lines, labels, rows, blockTops, lanes, extent });
}

/**
 * Moves bends that an engine has put into or too near a child beside it.
 *
 * @type {(task: ScopeTask, solution: Solution, bends: number[][], nodeOf: (end: number, isTail: boolean) => number) => void}
 */
function clearBands(task, solution, bends, nodeOf) {
  /** @type {number[][]} */
  const rows = [];
  task.blocks.forEach((_, node) => {
    const rank = solution.ranks[node];
    while (rows.length <= rank) rows.push([]);
    rows[rank].push(node);
  });
  const spans = rows.map((row) =>
    row
      .map((node) => ({
        left: solution.xs[node] - task.blocks[node].width / 2 - CLEARANCE,
        right: solution.xs[node] + task.blocks[node].width / 2 + CLEARANCE,
      }))
      .sort((a, b) => a.left - b.left),
  );
  task.edges.forEach((edge, at) => {
    const from = solution.ranks[nodeOf(edge.tail, true)];
    const step = solution.ranks[nodeOf(edge.head, false)] < from ? -1 : 1;
    bends[at] = bends[at].map((x, i) => clearOf(spans[from + step * (i + 1)] ?? [], x));
  });
}

/** @type {(spans: {left: number, right: number}[], x: number) => number} the nearest x outside all spans */
function clearOf(spans, x) {
  const hit = spans.find(({ left, right }) => x > left && x < right);
  if (!hit) return x;
  let left = hit.left;
  let right = hit.right;
  for (const span of spans) if (span.left < right && span.right > right) right = span.right;
  for (const span of [...spans].reverse()) if (span.right > left && span.left < left) left = span.left;
  return x - left < right - x ? left : right;
}

/** @type {(task: ScopeTask, solution: Solution, bends: number[][]) => {left: number, right: number}} */
function blockExtent(task, solution, bends) {
  let left = Infinity;
  let right = -Infinity;
  task.blocks.forEach((block, node) => {
    left = Math.min(left, solution.xs[node] - block.width / 2);
    right = Math.max(right, solution.xs[node] + block.width / 2);
  });
  for (const xs of bends) {
    for (const x of xs) {
      left = Math.min(left, x);
      right = Math.max(right, x);
    }
  }
  return left > right ? { left: 0, right: 0 } : { left, right };
}

/**
 * @typedef {{tops: number[], bottoms: number[], header: number, jogIn: number, jogOut: number, height: number}} Rows
 *   jogIn, jogOut: height of the strip in which edges move between a port on the border and its place inside
 *
 * @type {(task: ScopeTask, solution: Solution, bends: number[][], lanes: import("./rails.js").Lanes, tailX: number[],
 *   headX: number[], nodeOf: (end: number, isTail: boolean) => number) => Rows}
 */
function stackRows(task, solution, bends, lanes, tailX, headX, nodeOf) {
  const { ranks } = solution;
  const count = ranks.reduce((most, rank) => Math.max(most, rank + 1), 0);
  const heights = new Array(count).fill(0);
  task.blocks.forEach((block, node) => (heights[ranks[node]] = Math.max(heights[ranks[node]], block.height)));
  const shift = new Array(count).fill(0);
  const hasLabel = new Array(count).fill(false);
  task.edges.forEach((edge, at) => {
    if (lanes.byEdge[at]) return;
    const from = ranks[nodeOf(edge.tail, true)];
    const stops = [tailX[at], ...bends[at], headX[at]];
    for (let i = 1; i < stops.length; i += 1)
      shift[from + i - 1] = Math.max(shift[from + i - 1], Math.abs(stops[i] - stops[i - 1]));
    if (edge.labelWidth > 0) {
      hasLabel[from] = true;
      if (stops.length > 2) hasLabel[from + stops.length - 2] = true;
    }
  });
  const firstIsPorts = task.ins > 0;
  const lastIsPorts = task.outs > 0;
  const jogIn = firstIsPorts && !isStraight(task, solution, "in") ? JOG_HEIGHT : 0;
  const jogOut = lastIsPorts && !isStraight(task, solution, "out") ? JOG_HEIGHT : 0;
  const header = task.headerHeight;
  let y = header > 0 ? header + jogIn + (firstIsPorts ? 0 : 12) : TOP_PADDING;
  const tops = [];
  const bottoms = [];
  for (let rank = 0; rank < count; rank += 1) {
    tops.push(y);
    bottoms.push(y + heights[rank]);
    y += heights[rank];
    if (rank === count - 1) break;
    const isPortGap = (rank === 0 && firstIsPorts) || (rank === count - 2 && lastIsPorts);
    y +=
      gapHeight(isPortGap, shift[rank], hasLabel[rank]) + RAIL_STEP * (lanes.leaving[rank] + lanes.arriving[rank + 1]);
  }
  const height = y + (lastIsPorts ? jogOut : header > 0 ? PADDING : TOP_PADDING);
  return { tops, bottoms, header, jogIn, jogOut, height };
}

/** @type {(isPortGap: boolean, shift: number, hasLabel: boolean) => number} */
function gapHeight(isPortGap, shift, hasLabel) {
  const plain = isPortGap ? PORT_GAP : hasLabel ? LABEL_GAP : GAP;
  if (shift < 2) return plain;
  if (shift > 220) return Math.max(plain, WIDE_CURVE_GAP);
  return Math.max(plain, isPortGap ? PORT_CURVE_GAP : CURVE_GAP);
}

/** @type {(task: ScopeTask, solution: Solution, side: "in"|"out") => number[]} x inside the scope, per port */
function portXs(task, solution, side) {
  const start = task.blocks.length + (side === "in" ? 0 : task.ins);
  return solution.xs.slice(start, start + (side === "in" ? task.ins : task.outs));
}

/** @type {(task: ScopeTask, solution: Solution) => number | null} x at which the ports are centred on the border */
function axisOf(task, solution) {
  const all = [...portXs(task, solution, "in"), ...portXs(task, solution, "out")].sort((a, b) => a - b);
  return all.length === 0 ? null : all[Math.floor((all.length - 1) / 2)];
}

/** @type {(xs: number[], axis: number) => number[]} positions on the border, in the order of the positions inside */
function borderXs(xs, axis) {
  const order = xs.map((_, port) => port).sort((a, b) => xs[a] - xs[b]);
  const result = new Array(xs.length).fill(axis);
  order.forEach((port, at) => (result[port] = axis + (at - (xs.length - 1) / 2) * PORT_SPACING));
  return result;
}

/** @type {(task: ScopeTask, solution: Solution, side: "in"|"out") => boolean} */
function isStraight(task, solution, side) {
  const xs = portXs(task, solution, side);
  const border = borderXs(xs, axisOf(task, solution) ?? 0);
  return xs.every((x, port) => Math.abs(x - border[port]) < 1);
}

/**
 * @param {{task: ScopeTask, solution: Solution, lines: Line[], labels: ({x: number, y: number} | null)[], rows: Rows,
 *   blockTops: number[], lanes: import("./rails.js").Lanes, extent: {left: number, right: number}}} parts
 * @returns {ScopeLayout}
 */
function finish({ task, solution, lines, labels, rows, blockTops, lanes, extent }) {
  let { left, right } = extent;
  left = Math.min(left, lanes.left);
  right = Math.max(right, lanes.right);
  for (const x of [...portXs(task, solution, "in"), ...portXs(task, solution, "out")]) {
    left = Math.min(left, x);
    right = Math.max(right, x);
  }
  labels.forEach((label, at) => {
    if (!label) return;
    left = Math.min(left, label.x);
    right = Math.max(right, label.x + task.edges[at].labelWidth);
  });
  const axis = axisOf(task, solution) ?? (left + right) / 2;
  const ins = borderXs(portXs(task, solution, "in"), axis);
  const outs = borderXs(portXs(task, solution, "out"), axis);
  const padding = task.headerHeight > 0 ? PADDING : TOP_PADDING;
  let before = axis - left + padding;
  let after = right - axis + padding;
  if (task.headerHeight > 0) {
    const portRoom = ins.length === 0 ? 0 : axis - Math.min(...ins) + 14;
    before = Math.max(before, ins.length === 0 ? 0 : task.titleWidth + portRoom);
    if (ins.length === 0) after = Math.max(after, task.titleWidth + 14 - before);
    const even = Math.min(Math.max(before, after), EVEN_HALF_WIDTH);
    before = Math.max(before, even);
    after = Math.max(after, even);
  }
  const width = Math.ceil(before + after);
  const dx = before - axis;
  const middle = width / 2;
  const pen = { dx, ins, outs };
  return {
    width,
    height: Math.ceil(rows.height),
    xs: task.blocks.map((block, node) => solution.xs[node] - block.width / 2 + dx),
    ys: blockTops,
    inDx: ins.map((x) => x + dx - middle),
    outDx: outs.map((x) => x + dx - middle),
    lines: lines.map((line, at) => ({
      ...line,
      points: withBorder(task, task.edges[at], line.points, rows, solution, pen),
    })),
    labels: labels.map((label) => (label ? { x: label.x + dx, y: label.y } : null)),
  };
}

/**
 * Shifts a line into the scope and leads its ends at ports to the border.
 *
 * @type {(task: ScopeTask, edge: BlockEdge, points: number[], rows: Rows, solution: Solution,
 *   border: {dx: number, ins: number[], outs: number[]}) => number[]}
 */
function withBorder(task, edge, points, rows, solution, border) {
  const shifted = points.map((value, i) => (i % 2 === 0 ? value + border.dx : value));
  const full = edge.tail < 0 ? [...leadIn(task, ~edge.tail, rows, solution, border), ...shifted.slice(2)] : shifted;
  if (edge.head >= 0) return full;
  const inside = solution.xs[task.blocks.length + task.ins + ~edge.head] + border.dx;
  const outside = border.outs[~edge.head] + border.dx;
  const start = Math.ceil(rows.height) - rows.jogOut;
  return [...full, ...sCurve(inside, full[full.length - 1], outside, start + rows.jogOut)];
}

/** @type {(task: ScopeTask, port: number, rows: Rows, solution: Solution, border: {dx: number, ins: number[]}) => number[]} */
function leadIn(task, port, rows, solution, border) {
  const inside = solution.xs[task.blocks.length + port] + border.dx;
  const outside = border.ins[port] + border.dx;
  const bottom = rows.tops[0];
  const down = sCurve(outside, 0, outside, rows.header);
  const jog = bottom - rows.header < 0.5 ? [] : sCurve(outside, rows.header, inside, bottom);
  return [outside, 0, ...down, ...jog];
}

/** @type {(x0: number, y0: number, x1: number, y1: number) => number[]} control points and end, upright at both ends */
function sCurve(x0, y0, x1, y1) {
  const bow = (y1 - y0) * 0.5;
  return [x0, y0 + bow, x1, y1 - bow, x1, y1];
}
