/**
 * Folds a scope that would be a long strip into columns, like text on a page. It is cut between ranks where few lines run;
 * these go on through a channel to the top of the next column. Pure.
 *
 * @typedef {import("./arrange.js").ScopeLayout} ScopeLayout
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 *
 * @typedef {{y: number, xs: number[]}} Cut xs: of the lines that cross it, from left to right
 * @typedef {Object} Column
 * @property {number} from y of its upper cut; -Infinity for the first
 * @property {number} to y of its lower cut; Infinity for the last
 * @property {number} firstTop y of its uppermost block
 * @property {number} left
 * @property {number} right
 * @property {number} dx what moves it into place
 * @property {number} dy
 */
import { PADDING } from "./border.js";
import { roundCorners } from "./pen.js";

/** A scope is folded from this height in px and this proportion on. */
const LEAST_HEIGHT = 4200;
const LEAST_RATIO = 4;
/** Width to height of what is folded, and the width in px beyond which it only grows downwards. */
const GOAL_RATIO = 1.8;
const MOST_WIDTH = 8400;
/** As many lines as a cut may have: more would make a thicket of the channel. */
const MOST_LINES = 8;
/** Ranks that are tried for a cut. */
const CHOICES = 8;
/** So many times more or fewer columns than wanted are tried. */
const SPREAD = 1.4;
const CHANNEL = 26;
const STEP = 8;
const TURN = 14;

/**
 * @param {ScopeTask} task
 * @param {ScopeLayout} layout
 * @param {number[]} bottoms of the bands, per rank
 * @returns {ScopeLayout} the same layout where folding doesn't help
 */
export function foldColumns(task, layout, bottoms) {
  const { width, height } = layout;
  const usual = usualWidth(task, layout) + CHANNEL;
  if (task.columnHeight === 0 || height < LEAST_HEIGHT || height < LEAST_RATIO * usual) return layout;
  const byHeight = Math.round(height / task.columnHeight);
  const byRatio = Math.round(Math.sqrt((GOAL_RATIO * height) / usual));
  const most = Math.floor(MOST_WIDTH / usual);
  // As large as can be in a window of the usual proportion, with few holes; inside of columns, as high as they are.
  const worth = (/** @type {number} */ highest, /** @type {number} */ count) =>
    byHeight > 0
      ? -Math.abs(Math.log(highest / task.columnHeight))
      : Math.min(GOAL_RATIO / (count * usual), 1 / highest) * (height / (count * highest));
  const cuts = bestCuts(layout, bottoms, Math.min(byHeight || byRatio, most), most, worth);
  if (cuts.length === 0) return layout;
  const columns = placeColumns(task, layout, cuts);
  const columnAt = (/** @type {number} */ y) => columns.findIndex((column) => y < column.to);
  const below = cuts.map(({ xs }) => TURN + STEP * xs.length);
  const low = Math.max(
    ...columns.map(({ to, dy }, at) =>
      at < cuts.length ? to + dy + below[at] : height + dy + (task.outs > 0 ? 0 : -PADDING),
    ),
  );
  const newHeight = low + (task.outs > 0 ? TURN + STEP * task.outs : PADDING);
  const last = columns[columns.length - 1];
  const newWidth = Math.max(width, Math.ceil(last.right + last.dx + PADDING));
  const outs = layout.outDx.map((dx) => width / 2 + dx).sort((a, b) => a - b);
  const lines = layout.lines.map(({ points, isRail }) => {
    const folded = foldLine(points, columns, cuts);
    const isOut = task.outs > 0 && Math.abs(points[points.length - 1] - height) < 0.01;
    return { isRail, points: isOut ? leadOut(folded, points[points.length - 2], outs, low, newHeight) : folded };
  });
  const shift = width / 2 - newWidth / 2;
  return {
    width: newWidth,
    height: Math.ceil(newHeight),
    xs: layout.xs.map((x, at) => x + columns[columnAt(layout.ys[at])].dx),
    ys: layout.ys.map((y) => y + columns[columnAt(y)].dy),
    inDx: layout.inDx.map((dx) => dx + shift),
    outDx: layout.outDx.map((dx) => dx + shift),
    axisDx: layout.axisDx + shift,
    lines,
    labels: layout.labels.map((label) => {
      if (!label) return null;
      const { dx, dy } = columns[columnAt(label.y)];
      return { x: label.x + dx, y: label.y + dy };
    }),
  };
}

/** @type {(task: ScopeTask, layout: ScopeLayout) => number} width of most of the height: one wide child doesn't tell */
function usualWidth({ blocks }, { width }) {
  const sum = blocks.reduce((total, block) => total + block.height, 0);
  const mean = blocks.reduce((total, block) => total + block.width * block.height, 0) / sum;
  return Math.min(width, mean + 2 * PADDING);
}

/**
 * High blocks of equal size fill some numbers of columns evenly and others badly.
 *
 * @type {(layout: ScopeLayout, bottoms: number[], wanted: number, most: number, worth: (highest: number, count: number) => number) => Cut[]}
 *   wanted, most: numbers of columns; worth: of columns no higher than that
 */
function bestCuts({ lines, height }, bottoms, wanted, most, worth) {
  /** @type {Map<number, Cut | null>} */
  const known = new Map();
  const cutAtOnce = (/** @type {number} */ y) => {
    const cut = known.has(y) ? known.get(y) : cutAt(lines, y);
    known.set(y, cut ?? null);
    return cut ?? null;
  };
  let best = { cuts: /** @type {Cut[]} */ ([]), worth: -Infinity };
  if (wanted < 2) return best.cuts;
  const last = Math.min(Math.ceil(wanted * SPREAD), most);
  for (let count = Math.max(Math.floor(wanted / SPREAD), 2); count <= last; count += 1) {
    const cuts = chooseCuts(height, bottoms, count, cutAtOnce);
    if (cuts.length === 0) continue;
    const ends = [0, ...cuts.map(({ y }) => y), height];
    const highest = Math.max(...ends.slice(1).map((end, at) => end - ends[at]));
    const now = worth(highest, cuts.length + 1);
    if (now > best.worth) best = { cuts, worth: now };
  }
  return best.cuts;
}

/** @type {(height: number, bottoms: number[], count: number, cutAt: (y: number) => Cut | null) => Cut[]} into columns of about the same height */
function chooseCuts(height, bottoms, count, cutAt) {
  /** @type {Cut[]} */
  const cuts = [];
  let from = 0;
  for (let left = count; left > 1; left -= 1) {
    const goal = (height - from) / left;
    const ys = bottoms.slice(0, -1).filter((y) => y > from + goal / 3 && y < height - goal / 3);
    ys.sort((a, b) => Math.abs(a - from - goal) - Math.abs(b - from - goal));
    /** @type {Cut | null} */
    let cut = null;
    for (let choice = 0; choice < Math.min(CHOICES, ys.length) && cut === null; choice += 1) cut = cutAt(ys[choice]);
    if (cut === null) break;
    cuts.push(cut);
    from = cut.y;
  }
  return cuts;
}

/** @type {(lines: ScopeLayout["lines"], y: number) => Cut | null} null where too much crosses */
function cutAt(lines, y) {
  /** @type {Set<number>} */
  const xs = new Set();
  for (const { points } of lines) {
    for (let i = 0; i + 7 < points.length; i += 6) {
      const [start, end] = [points[i + 1], points[i + 7]];
      if (end <= y && start > y) return null;
      if (start <= y && end > y) xs.add(roundX(points[i]));
    }
  }
  return xs.size > 0 && xs.size <= MOST_LINES ? { y, xs: [...xs].sort((a, b) => a - b) } : null;
}

/** Lines on the same x share their way. @param {number} x */
const roundX = (x) => Math.round(x * 10) / 10;

/** @type {(task: ScopeTask, layout: ScopeLayout, cuts: Cut[]) => Column[]} */
function placeColumns(task, layout, cuts) {
  const edges = [-Infinity, ...cuts.map(({ y }) => y), Infinity];
  /** @type {Column[]} */
  const columns = [];
  for (let at = 0; at + 1 < edges.length; at += 1) {
    const [from, to] = [edges[at], edges[at + 1]];
    const firstTop = layout.ys.reduce((least, y) => (y >= from && y < least ? y : least), Infinity);
    const { left, right } = extentOf(task, layout, from, to, firstTop);
    if (at === 0) {
      columns.push({ from, to, firstTop, left, right, dx: 0, dy: 0 });
      continue;
    }
    const before = columns[at - 1];
    const lines = cuts[at - 1].xs.length;
    const dx = before.right + before.dx + CHANNEL + STEP * lines + TURN - left;
    const dy = task.headerHeight + TURN + PADDING + STEP * lines - from;
    columns.push({ from, to, firstTop, left, right, dx, dy });
  }
  return columns;
}

/** @type {(task: ScopeTask, layout: ScopeLayout, from: number, to: number, firstTop: number) => {left: number, right: number}} */
function extentOf({ blocks, edges }, { xs, ys, lines, labels }, from, to, firstTop) {
  let left = Infinity;
  let right = -Infinity;
  const add = (/** @type {number} */ y, /** @type {number} */ x0, /** @type {number} */ x1) => {
    if (y < from || y > to) return;
    left = Math.min(left, x0);
    right = Math.max(right, x1);
  };
  blocks.forEach((block, at) => add(ys[at] === from ? from + 1 : ys[at], xs[at], xs[at] + block.width));
  labels.forEach((label, at) => label && add(label.y, label.x, label.x + edges[at].labelWidth));
  for (const { points } of lines) {
    for (let i = 0; i + 7 < points.length; i += 6) {
      const [top, bottom] = [Math.min(points[i + 1], points[i + 7]), Math.max(points[i + 1], points[i + 7])];
      if (top >= to || bottom <= from || (top >= from && bottom <= firstTop)) continue;
      const [x0, x1] = [points[i], points[i + 6]];
      left = Math.min(left, x0, x1);
      right = Math.max(right, x0, x1);
    }
  }
  return { left, right };
}

/** @type {(points: number[], columns: Column[], cuts: Cut[]) => number[]} */
function foldLine(points, columns, cuts) {
  const home = homeOf(points, columns);
  if (home) return points.map((value, i) => value + (i % 2 === 0 ? home.dx : home.dy));
  const pieces = splitAtCuts(points, cuts);
  const first = columnOf(pieces[0] ?? points, columns);
  // A line that starts on a cut leaves from the column above it.
  let column = columns.findIndex(({ to }) => points[1] <= to);
  const start = columns[Math.min(column, first)];
  column = Math.min(column, first);
  const result = [points[0] + start.dx, points[1] + start.dy];
  const add = (/** @type {number[]} */ piece, /** @type {Column} */ { dx, dy }) => {
    for (let i = 2; i < piece.length; i += 2) result.push(piece[i] + dx, piece[i + 1] + dy);
  };
  for (let at = 0; at < pieces.length; at += 1) {
    const next = columnOf(pieces[at], columns);
    const above = column < next ? enteringPieces(pieces, at, columns[next]) : 0;
    if (above === 0) {
      for (; column < next; column += 1) result.push(...connector(pieces[at][0], columns, cuts, column, pieces[at][0]));
      add(pieces[at], columns[next]);
      continue;
    }
    // What turns above the first block comes in where it turns to.
    const [x, y] = pieces[at + above - 1].slice(-2);
    for (; column < next; column += 1) {
      const endX = column + 1 === next ? x : pieces[at][0];
      result.push(...connector(pieces[at][0], columns, cuts, column, endX));
    }
    add(straight(x, cuts[next - 1].y, y), columns[next]);
    at += above - 1;
  }
  return result;
}

/** @type {(pieces: number[][], from: number, column: Column) => number} how many of them, from one on, lie above the first block of the column */
function enteringPieces(pieces, from, { firstTop }) {
  let end = from;
  while (end < pieces.length && pieces[end][pieces[end].length - 1] <= firstTop) end += 1;
  return end - from;
}

/** @type {(x: number, from: number, to: number) => number[]} a cubic */
function straight(x, from, to) {
  const third = (to - from) / 3;
  return [x, from, x, from + third, x, to - third, x, to];
}

/** @type {(points: number[], columns: Column[]) => Column | null} the one column that holds a line, as it does nearly all */
function homeOf(points, columns) {
  let [top, bottom] = [Infinity, -Infinity];
  for (let i = 1; i < points.length; i += 6) {
    top = Math.min(top, points[i]);
    bottom = Math.max(bottom, points[i]);
  }
  return columns.find(({ from, to }) => top > from && bottom < to) ?? null;
}

/** @type {(piece: number[], columns: Column[]) => number} the column that the middle of the piece lies in */
function columnOf(piece, columns) {
  const middle = (piece[1] + piece[piece.length - 1]) / 2;
  return columns.findIndex(({ to }) => middle <= to);
}

/** @type {(points: number[], cuts: Cut[]) => number[][]} cubics; those that run straight down through a cut become several */
function splitAtCuts(points, cuts) {
  /** @type {number[][]} */
  const pieces = [];
  for (let i = 0; i + 7 < points.length; i += 6) {
    const [x, top, bottom] = [points[i], points[i + 1], points[i + 7]];
    const inside = cuts.filter(({ y }) => y > top && y < bottom);
    if (inside.length === 0) {
      pieces.push(points.slice(i, i + 8));
      continue;
    }
    const stops = [top, ...inside.map(({ y }) => y), bottom];
    for (let at = 1; at < stops.length; at += 1) pieces.push(straight(x, stops[at - 1], stops[at]));
  }
  return pieces;
}

/**
 * Down below the column, up the channel, over the next column: the line furthest right turns first, so none cross.
 *
 * @param {number} x
 * @param {Column[]} columns
 * @param {Cut[]} cuts
 * @param {number} at number of the cut
 * @param {number} toX where it comes in, as x before folding
 * @returns {number[]} control points and ends
 */
function connector(x, columns, cuts, at, toX) {
  const { y, xs } = cuts[at];
  const [before, after] = [columns[at], columns[at + 1]];
  const fromLeft = Math.max(0, xs.indexOf(roundX(x)));
  const fromRight = xs.length - 1 - fromLeft;
  const low = y + before.dy + TURN + STEP * fromRight;
  const lane = before.right + before.dx + CHANNEL / 2 + STEP * fromRight;
  const high = y + after.dy - TURN - STEP * fromLeft;
  const [startX, endX] = [x + before.dx, toX + after.dx];
  const corners = [startX, y + before.dy, startX, low, lane, low, lane, high, endX, high, endX, y + after.dy];
  return roundCorners(corners).slice(2);
}

/** @type {(points: number[], x: number, outs: number[], low: number, height: number) => number[]} back to its port on the border */
function leadOut(points, x, outs, low, height) {
  const [endX, endY] = points.slice(-2);
  const place = outs.reduce((best, out, at) => (Math.abs(out - x) < Math.abs(outs[best] - x) ? at : best), 0);
  const level = low + TURN / 2 + STEP * place;
  return [...points, ...roundCorners([endX, endY, endX, level, x, level, x, height]).slice(2)];
}
