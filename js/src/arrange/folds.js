/**
 * Chooses which scopes may be folded into columns, from the outside in: where most of the height lies in one child, the
 * child is folded instead, and in a folded scope a child much higher than a column is folded too. Pure.
 *
 * @typedef {import("../scopes.js").Scope} Scope
 */

/** Heights in px that are estimated: of a closed child with the gap below it, and of what an open one has besides. */
const CLOSED = 62;
const AROUND = 76;
const LEAST_HEIGHT = 4000;
const LEAST_CHILDREN = 4;
/** Part of the height from which on one child is all that matters. */
const DOMINANT = 0.6;
/** Usual width of a column in px, and width to height of what is folded. */
const COLUMN_WIDTH = 700;
const GOAL_RATIO = 1.8;
/** A child higher than this many columns is folded itself. */
const TOO_HIGH = 1.6;
const ROUND = 500;

/**
 * @param {Scope[]} scopes
 * @returns {number[]} per scope: height in px that its columns should have; 0 where it may not be folded, Infinity where only
 *   the proportions of the whole count
 */
export function chooseFolds(scopes) {
  const heights = scopes.map((scope) => scope.inner.filter((inner) => inner < 0).length * CLOSED);
  for (let at = scopes.length - 1; at > 0; at -= 1) heights[scopes[at].parent] += heights[at] + AROUND;
  const columns = scopes.map(() => 0);
  const open = [{ at: 0, goal: Infinity }];
  while (open.length > 0) {
    const { at, goal } = /** @type {{at: number, goal: number}} */ (open.pop());
    const scope = scopes[at];
    const inner = scope.inner.filter((child) => child >= 0 && heights[child] > LEAST_HEIGHT);
    const highest = inner.reduce((best, child) => Math.max(best, heights[child]), 0);
    const isFolded =
      scope.children.length >= LEAST_CHILDREN && heights[at] > LEAST_HEIGHT && highest < DOMINANT * heights[at];
    const isTooHigh = (/** @type {number} */ child, /** @type {number} */ height) => heights[child] > TOO_HIGH * height;
    if (isFolded) columns[at] = goal;
    // Rounded, so that scopes of about the same surroundings can share their layout.
    const height =
      goal < Infinity ? goal : Math.ceil(Math.sqrt((heights[at] * COLUMN_WIDTH) / GOAL_RATIO) / ROUND) * ROUND;
    for (const child of inner) {
      if (!isFolded) open.push({ at: child, goal });
      else if (isTooHigh(child, height)) open.push({ at: child, goal: height });
    }
  }
  return columns;
}
