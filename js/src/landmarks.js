/**
 * Names of open modules that are too small to carry them in their title strips: from afar, they tell where one is. Beside
 * the picture where it is a narrow strip, else in the upper left corner of the module. Pure.
 *
 * @typedef {import("./types.js").Box} Box
 * @typedef {{index: number, x: number, y: number, isBeside: boolean}} Landmark of a box; x, y: left end and middle of the
 *   text, CSS px
 */

/** A title strip of this height on the screen, CSS px, carries its name itself. */
const STRIP_PX = 10;
/** What is lower than this on the screen is no landmark. CSS px. */
const LEAST_PX = 15;
/** A name inside covers some of the module: only where it is a small part. CSS px. */
const LEAST_INSIDE_PX = 44;
/** A picture narrower than this has room beside it, and none in it. CSS px. */
const STRIP_WIDTH_PX = 60;
const LINE_PX = 14;
const GAP_PX = 8;
const CHARACTER_PX = 6.8;

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
    const mark = place(boxes, index, transform);
    const isFree = placed.every(
      ({ x, y, right }) => Math.abs(y - mark.y) >= LINE_PX || x > mark.right || right < mark.x,
    );
    if (mark.fits && isFree) placed.push({ index, x: mark.x, y: mark.y, isBeside: mark.isBeside, right: mark.right });
  }
  return placed;
}

/** @type {(boxes: Box[], index: number, transform: {x: number, y: number, k: number}) => {x: number, y: number, right: number, isBeside: boolean, fits: boolean}} */
function place(boxes, index, { x: left, y: top, k }) {
  const box = boxes[index];
  const outer = outermost(boxes, box);
  const isBeside = outer.width * k < STRIP_WIDTH_PX;
  const width = (isBeside ? box.title.length + box.subtitle.length + 1 : box.title.length) * CHARACTER_PX;
  const x = left + (isBeside ? (outer.x + outer.width) * k + GAP_PX : box.x * k + GAP_PX / 2);
  const fits =
    isBeside || (box.width * k >= Math.max(width + GAP_PX, LEAST_INSIDE_PX) && box.height * k >= LEAST_INSIDE_PX);
  return { x, y: top + box.y * k + LINE_PX / 2, right: x + width, isBeside, fits };
}

/** @type {(boxes: Box[], box: Box) => Box} */
function outermost(boxes, box) {
  let at = box;
  while (at.parent >= 0) at = boxes[at.parent];
  return at;
}
