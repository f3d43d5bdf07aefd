/**
 * Names beside open modules that are too small to carry them: from afar, they tell where one is. Pure.
 *
 * @typedef {import("./types.js").Box} Box
 * @typedef {{index: number, x: number, y: number}} Landmark of a box; x, y: left end and middle of the text, CSS px
 */

/** A title strip of this height on the screen, CSS px, carries its name itself. */
const STRIP_PX = 10;
/** What is lower than this on the screen is no landmark. CSS px. */
const LEAST_PX = 15;
const LINE_PX = 14;
const GAP_PX = 8;
const CHARACTER_PX = 6.6;

/**
 * @param {Box[]} boxes
 * @param {number[]} panels indices of the open modules in view, enclosing ones first
 * @param {{x: number, y: number, k: number}} transform scene to CSS px
 * @returns {Landmark[]} no two overlap; enclosing modules come first
 */
export function landmarks(boxes, panels, transform) {
  const { k } = transform;
  const candidates = panels
    .filter((index) => boxes[index].headerHeight * k < STRIP_PX && boxes[index].height * k >= LEAST_PX)
    .sort((a, b) => boxes[a].item.depth - boxes[b].item.depth);
  /** @type {(Landmark & {right: number})[]} */
  const placed = [];
  for (const index of candidates) {
    const box = boxes[index];
    const outer = outermost(boxes, box);
    const x = (outer.x + outer.width) * k + transform.x + GAP_PX;
    const y = box.y * k + transform.y + LINE_PX / 2;
    const right = x + (box.title.length + box.subtitle.length + 1) * CHARACTER_PX;
    const isFree = placed.every((other) => Math.abs(other.y - y) >= LINE_PX || other.x > right || other.right < x);
    if (isFree) placed.push({ index, x, y, right });
  }
  return placed;
}

/** @type {(boxes: Box[], box: Box) => Box} */
function outermost(boxes, box) {
  let at = box;
  while (at.parent >= 0) at = boxes[at.parent];
  return at;
}
