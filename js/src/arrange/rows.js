/**
 * Heights: one band per rank, as high as its highest child, and between two bands a gap with room for what turns there,
 * for labels and for arrowheads. Pure.
 *
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 * @typedef {import("../engine/ranks.js").Solution} Solution
 * @typedef {import("./rails.js").Lanes} Lanes
 * @typedef {import("./border.js").Border} Border
 */
import { LABEL_HEIGHT } from "../measure.js";
import { PADDING, TOP_PADDING } from "./border.js";

/** Distances in px. */
const GAP = 26;
const LABEL_GAP = LABEL_HEIGHT + 20;
const CURVE_GAP = 32;
const WIDE_CURVE_GAP = 44;
const PORT_GAP = 15;
const PORT_CURVE_GAP = 28;
const JOG_HEIGHT = 18;
const RAIL_STEP = 7;

/**
 * @typedef {{tops: number[], bottoms: number[], header: number, jogIn: number, jogOut: number, height: number}} Rows
 *   jogIn, jogOut: height of the strip in which edges move between a port on the border and its place inside
 *
 * @param {{task: ScopeTask, solution: Solution, bends: number[][], lanes: Lanes, tailX: number[], headX: number[],
 *   nodeOf: (end: number, isTail: boolean) => number, border: Border}} given
 * @returns {Rows}
 */
export function stackRows({ task, solution, bends, lanes, tailX, headX, nodeOf, border }) {
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
  const jogIn = firstIsPorts && !border.isStraightIn ? JOG_HEIGHT : 0;
  const jogOut = lastIsPorts && !border.isStraightOut ? JOG_HEIGHT : 0;
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
