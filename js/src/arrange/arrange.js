/**
 * From ranks and x to a finished scope in px: rows, attachment points, curves, gutters, labels. Pure.
 *
 * Each rank has a band as high as its highest child. Edges run vertically inside bands and turn only in the gaps between
 * them, where no child is, so no edge can pass through a child.
 *
 * @typedef {import("../engine/ranks.js").Problem} Problem
 * @typedef {import("../engine/ranks.js").Solution} Solution
 *
 * @typedef {Object} Block a child as its scope sees it
 * @property {number} width
 * @property {number} height
 * @property {boolean} isRound half circles at its ends
 * @property {number[] | null} inDx of an open child: per port, where it is, from the middle of the upper border
 * @property {number[] | null} outDx likewise on the lower border
 * @property {number} axisDx where its main line runs, from its middle
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
 * @property {boolean} isList
 * @property {number} columnHeight see chooseFolds
 * @property {Block[]} blocks
 * @property {number} ins ports in; port 0 is on the main line
 * @property {number} outs ports out, likewise
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
 * @property {number} axisDx
 * @property {Line[]} lines per edge
 * @property {({x: number, y: number} | null)[]} labels per edge; null where there is none or no room for one
 */
import { assignRanks } from "../engine/ranks.js";
import { borderOf, PADDING, portXs, settlePorts } from "./border.js";
import { Pen } from "./pen.js";
import { foldColumns } from "./columns.js";
import { chooseRails, railLanes } from "./rails.js";
import { stackRows } from "./rows.js";
import { plainEnds, spreadAttachments } from "./attach.js";
import { placeLabels } from "./labels.js";
import { straighten } from "./straighten.js";

/** Engines get no child higher than this: what is inside a child doesn't matter to its order. */
const PROXY_HEIGHT = 60;
const PORT_WIDTH = 10;
/** Room in a band, in px, from which on it matters where in it a child stands. */
const TALL_ROOM = 60;
/** How much straightness matters: to the next rank along the main line, else, or where a line starts or ends; 1 for others. */
const WEIGHTS = { main: 12, near: 8, deadEnd: 4 };

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
      weight: 1,
    })),
  };
  const { ranks, isReversed } = assignRanks(whole);
  const railOf = chooseRails(whole, edges, ranks, isReversed);
  const kept = edges.map((_, at) => at).filter((at) => !railOf[at]);
  weighEdges(task, whole, ranks, kept);
  return { problem: { ...whole, edges: kept.map((at) => whole.edges[at]) }, railOf, kept };
}

/**
 * The main line should be straight before anything that passes by, comes in or branches off.
 *
 * @param {ScopeTask} task
 * @param {Problem} problem its edges get their weights
 * @param {number[]} ranks
 * @param {number[]} kept edges that the engine gets
 */
function weighEdges({ edges, blocks }, problem, ranks, kept) {
  const isFed = problem.kinds.map((kind) => kind === "in");
  const isRead = problem.kinds.map((kind) => kind === "out");
  for (const at of kept) {
    isRead[problem.edges[at].tail] = true;
    isFed[problem.edges[at].head] = true;
  }
  kept.forEach((at) => {
    const edge = problem.edges[at];
    if (ranks[edge.head] - ranks[edge.tail] !== 1) return;
    const { tail, head } = edges[at];
    const isDeadEnd = !isFed[edge.tail] || !isRead[edge.head];
    const isMain = edge.tailDx === (blocks[tail]?.axisDx ?? 0) && edge.headDx === (blocks[head]?.axisDx ?? 0);
    edge.weight = isDeadEnd ? WEIGHTS.deadEnd : isMain ? WEIGHTS.main : WEIGHTS.near;
  });
}

/** @type {(dx: number[] | null, port: number) => number} */
const portDx = (dx, port) => dx?.[port] ?? 0;

/**
 * @param {ScopeTask} task
 * @param {Solution} solved
 * @param {boolean[]} railOf
 * @param {number[]} kept
 * @returns {ScopeLayout}
 */
export function arrange(task, solved, railOf, kept) {
  const { blocks, ins, edges } = task;
  /** @type {number[][]} */
  const given = edges.map(() => []);
  kept.forEach((edge, at) => (given[edge] = solved.bends[at]));
  const nodeOf = (/** @type {number} */ end, /** @type {boolean} */ isTail) =>
    end >= 0 ? end : blocks.length + ~end + (isTail ? 0 : ins);
  const ends = plainEnds(task, solved, nodeOf);
  const bends = straighten(task, solved, given, ends, nodeOf);
  const extents = rankExtents(task, solved, bends, (at) => solved.ranks[nodeOf(edges[at].tail, true)]);
  const extent = extents.reduce(union);
  const lanes = railLanes(task, solved.ranks, railOf, nodeOf, (node) => solved.xs[node], extents);
  const { tailX, headX } = spreadAttachments(task, ends, solved, bends, lanes);
  const solution = settlePorts(task, solved, { bends, tailX, headX });
  const content = { left: Math.min(extent.left, lanes.left), right: Math.max(extent.right, lanes.right) };
  const border = borderOf(task, solution, content);
  const rows = stackRows({ task, solution, bends, lanes, tailX, headX, nodeOf, border });
  const places = bandPlaces(task);
  const blockTops = blocks.map((block, at) => {
    const rank = solution.ranks[at];
    const room = rows.bottoms[rank] - rows.tops[rank] - block.height;
    return rows.tops[rank] + room * (room > TALL_ROOM ? places[at] : 0.5);
  });
  const pen = new Pen(blocks, blockTops, solution, rows, nodeOf);
  const lines = edges.map((edge, at) => {
    const lane = lanes.byEdge[at];
    return lane ? pen.rail(edge, tailX[at], headX[at], lane) : pen.curve(edge, tailX[at], headX[at], bends[at]);
  });
  const labels = placeLabels({ task, lines, solution, blockTops, rows, tailX, headX, bends, nodeOf, isRail: railOf });
  const strip = finish({ task, solution, lines, labels, rows, blockTops, border });
  return foldColumns(task, strip, rows.bottoms);
}

/** @type {(task: ScopeTask) => number[]} per block: where in its band it stands, 0 at the top; what starts or ends a line keeps it short */
function bandPlaces({ blocks, edges }) {
  const isRead = new Set(edges.map(({ tail }) => tail));
  const isFed = new Set(edges.map(({ head }) => head));
  return blocks.map((_, at) => (isRead.has(at) === isFed.has(at) ? 0.5 : isRead.has(at) ? 1 : 0));
}

/** @typedef {import("./rails.js").Extent} Extent */

/** @type {(task: ScopeTask, solution: Solution, bends: number[][], firstRank: (edge: number) => number) => Extent[]} per rank */
function rankExtents(task, { xs, ranks }, bends, firstRank) {
  const nothing = { left: Infinity, right: -Infinity };
  const count = ranks.reduce((most, rank) => Math.max(most, rank + 1), 1);
  const extents = Array.from({ length: count }, () => nothing);
  const add = (/** @type {number} */ rank, /** @type {number} */ left, /** @type {number} */ right) =>
    (extents[rank] = union(extents[rank], { left, right }));
  task.blocks.forEach(({ width }, node) => add(ranks[node], xs[node] - width / 2, xs[node] + width / 2));
  bends.forEach((line, at) => line.forEach((x, i) => add(firstRank(at) + i + 1, x, x)));
  const whole = extents.reduce(union);
  if (whole.left > whole.right) return extents.map(() => ({ left: 0, right: 0 }));
  const middle = (whole.left + whole.right) / 2;
  return extents.map((extent) => (extent.left > extent.right ? { left: middle, right: middle } : extent));
}

/** @type {(a: Extent, b: Extent) => Extent} */
const union = (a, b) => ({ left: Math.min(a.left, b.left), right: Math.max(a.right, b.right) });

/**
 * @param {{task: ScopeTask, solution: Solution, lines: Line[], labels: ({x: number, y: number} | null)[],
 *   rows: import("./rows.js").Rows, blockTops: number[], border: import("./border.js").Border}} parts
 * @returns {ScopeLayout}
 */
function finish({ task, solution, lines, labels, rows, blockTops, border }) {
  let { left, right } = border;
  labels.forEach((label, at) => {
    if (!label) return;
    left = Math.min(left, label.x - PADDING / 2);
    right = Math.max(right, label.x + task.edges[at].labelWidth + PADDING / 2);
  });
  const width = Math.ceil(right - left);
  const height = Math.ceil(rows.height);
  const middle = left + width / 2;
  return {
    width,
    height,
    xs: task.blocks.map((block, node) => solution.xs[node] - block.width / 2 - left),
    ys: blockTops,
    inDx: border.ins.map((x) => x - middle),
    outDx: border.outs.map((x) => x - middle),
    axisDx: border.axis - middle,
    lines: lines.map(({ points, isRail }, at) => {
      const whole = withPorts({ task, solution, rows, border, height }, task.edges[at], points);
      return { points: whole.map((value, i) => (i % 2 === 0 ? value - left : value)), isRail };
    }),
    labels: labels.map((label) => (label ? { x: label.x - left, y: label.y } : null)),
  };
}

/**
 * Leads the ends of a line that are at ports to the border.
 *
 * @param {{task: ScopeTask, solution: Solution, rows: import("./rows.js").Rows, border: import("./border.js").Border,
 *   height: number}} given
 * @param {BlockEdge} edge
 * @param {number[]} points
 * @returns {number[]}
 */
function withPorts({ task, solution, rows, border, height }, edge, points) {
  let whole = points;
  if (edge.tail < 0) {
    const port = ~edge.tail;
    const [outside, inside] = [border.ins[port], portXs(task, solution, "in")[port]];
    const jog = rows.jogIn > 0 ? sCurve(outside, rows.header, inside, rows.tops[0]) : [];
    whole = [outside, 0, ...sCurve(outside, 0, outside, rows.header), ...jog, ...points.slice(2)];
  }
  if (edge.head < 0) {
    const port = ~edge.head;
    const [outside, inside] = [border.outs[port], portXs(task, solution, "out")[port]];
    whole = [...whole, ...sCurve(inside, whole[whole.length - 1], outside, height)];
  }
  return whole;
}

/** @type {(x0: number, y0: number, x1: number, y1: number) => number[]} control points and end, upright at both ends */
function sCurve(x0, y0, x1, y1) {
  const bow = (y1 - y0) * 0.5;
  return [x0, y0 + bow, x1, y1 - bow, x1, y1];
}
