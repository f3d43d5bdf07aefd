/**
 * Finds room for the labels of edges, in the gaps between the rows of a scope: beside their own edge, on no child, no other
 * label and no other edge. A label that finds none is left out. Pure.
 *
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 * @typedef {import("./arrange.js").Line} Line
 * @typedef {import("../engine/ranks.js").Solution} Solution
 * @typedef {{x: number, y: number, width: number, height: number}} Rect
 *
 * @typedef {Object} LabelTask
 * @property {ScopeTask} task
 * @property {Line[]} lines
 * @property {Solution} solution
 * @property {number[]} blockTops
 * @property {{tops: number[], bottoms: number[]}} rows
 * @property {number[]} tailX
 * @property {number[]} headX
 * @property {number[][]} bends
 * @property {(end: number, isTail: boolean) => number} nodeOf
 * @property {boolean[]} isRail
 */
import { LABEL_HEIGHT } from "../measure.js";

const BESIDE = 5;
const BELOW_TAIL = 3;
/** Room for the arrowhead. */
const ABOVE_HEAD = 10;
const SAMPLES = 6;

/**
 * @param {LabelTask} given
 * @returns {({x: number, y: number} | null)[]} upper left corners, per edge
 */
export function placeLabels(given) {
  const { task, solution, rows } = given;
  const count = rows.tops.length;
  /** What is in the way, by the rank of the band or of the gap below it. */
  const rects = Array.from({ length: count + 1 }, () => /** @type {Rect[]} */ ([]));
  task.blocks.forEach((block, node) => {
    const rect = {
      x: solution.xs[node] - block.width / 2,
      y: given.blockTops[node],
      width: block.width,
      height: block.height,
    };
    rects[solution.ranks[node]].push(rect);
  });
  const strokes = strokesByGap(given);
  /** @type {Set<string>} */
  const isLabelled = new Set();
  return task.edges.map((edge, at) => {
    const key = `${edge.tail} ${edge.tensor}`;
    if (edge.labelWidth === 0 || given.isRail[at] || isLabelled.has(key)) return null;
    for (const { gap, x, y } of candidates(given, at)) {
      const rect = { x, y, width: edge.labelWidth, height: LABEL_HEIGHT };
      if (meetsAny(rect, rects[gap]) || meetsAny(rect, rects[gap + 1])) continue;
      if (strokes[gap].some((points) => touches(rect, points))) continue;
      rects[gap].push(rect);
      isLabelled.add(key);
      return { x, y };
    }
    return null;
  });
}

/**
 * @param {LabelTask} given
 * @param {number} at edge
 * @returns {{gap: number, x: number, y: number}[]} the best place first
 */
function candidates(given, at) {
  const { task, solution, rows } = given;
  const { tail, head, labelWidth } = task.edges[at];
  const from = solution.ranks[given.nodeOf(tail, true)];
  const to = solution.ranks[given.nodeOf(head, false)];
  if (to <= from) return [];
  const upper = rows.bottoms[from] + BELOW_TAIL;
  const lower = rows.tops[to] - LABEL_HEIGHT - ABOVE_HEAD;
  const places = [
    { gap: from, x: given.tailX[at] + BESIDE, y: upper },
    { gap: to - 1, x: given.headX[at] + BESIDE, y: lower },
    { gap: from, x: given.tailX[at] - BESIDE - labelWidth, y: upper },
    { gap: to - 1, x: given.headX[at] - BESIDE - labelWidth, y: lower },
  ];
  return places.filter(({ gap, y }) => y >= rows.bottoms[gap] && y + LABEL_HEIGHT <= rows.tops[gap + 1]);
}

/** @type {(given: LabelTask) => number[][][]} pieces of all lines, as points, by gap */
function strokesByGap(given) {
  const { lines, rows } = given;
  const byGap = rows.tops.map(() => /** @type {number[][]} */ ([]));
  lines.forEach(({ points }) => {
    for (let i = 0; i + 7 < points.length; i += 6) {
      const top = Math.min(points[i + 1], points[i + 7]);
      const bottom = Math.max(points[i + 1], points[i + 7]);
      const piece = sample(points, i);
      for (let gap = gapAt(rows, top); gap < byGap.length && rows.bottoms[gap] <= bottom; gap += 1)
        byGap[gap].push(piece);
    }
  });
  return byGap;
}

/** @type {(rows: {tops: number[]}, y: number) => number} the last rank whose band starts above y, 0 if none does */
function gapAt(rows, y) {
  let low = 0;
  let high = rows.tops.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (rows.tops[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** @type {(points: number[], at: number) => number[]} points along the cubic that starts at index `at` */
function sample(points, at) {
  const [x0, y0, x3, y3] = [points[at], points[at + 1], points[at + 6], points[at + 7]];
  const [x1, y1, x2, y2] = [points[at + 2], points[at + 3], points[at + 4], points[at + 5]];
  if (x0 === x1 && x1 === x2 && x2 === x3) return [x0, y0, x3, y3];
  const result = [x0, y0];
  for (let i = 1; i <= SAMPLES; i += 1) {
    const t = i / SAMPLES;
    const s = 1 - t;
    result.push(s * s * s * x0 + 3 * s * s * t * x1 + 3 * s * t * t * x2 + t * t * t * x3);
    result.push(s * s * s * y0 + 3 * s * s * t * y1 + 3 * s * t * t * y2 + t * t * t * y3);
  }
  return result;
}

/** @type {(a: Rect, others: Rect[]) => boolean} */
function meetsAny(a, others) {
  for (const b of others) {
    if (a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height) return true;
  }
  return false;
}

/** @type {(rect: Rect, points: number[]) => boolean} whether the polyline meets the rectangle */
function touches(rect, points) {
  for (let i = 0; i + 3 < points.length; i += 2) {
    if (segmentMeets(rect, points[i], points[i + 1], points[i + 2], points[i + 3])) return true;
  }
  return false;
}

/** Clips the segment to the rectangle (Liang and Barsky, 1984). @type {(rect: Rect, x0: number, y0: number, x1: number, y1: number) => boolean} */
function segmentMeets(rect, x0, y0, x1, y1) {
  const [left, top] = [rect.x, rect.y];
  const [right, bottom] = [left + rect.width, top + rect.height];
  // Most segments are all on one side, and this is asked often.
  if (x0 < left && x1 < left) return false;
  if (x0 > right && x1 > right) return false;
  if (y0 < top && y1 < top) return false;
  if (y0 > bottom && y1 > bottom) return false;
  let start = 0;
  let end = 1;
  const dx = x1 - x0;
  const dy = y1 - y0;
  if (dx !== 0) {
    const [one, other] = [(left - x0) / dx, (right - x0) / dx];
    start = Math.max(start, Math.min(one, other));
    end = Math.min(end, Math.max(one, other));
  }
  if (dy !== 0) {
    const [one, other] = [(top - y0) / dy, (bottom - y0) / dy];
    start = Math.max(start, Math.min(one, other));
    end = Math.min(end, Math.max(one, other));
  }
  return start <= end;
}
