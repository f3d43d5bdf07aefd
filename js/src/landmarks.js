/**
 * Names of open modules that are too small to carry them in their title strips: from afar, they tell where one is. Beside
 * the picture where it is a narrow strip, else on the upper border of the module. Pure.
 *
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./spatial.js").Spatial} Spatial
 * @typedef {{index: number, x: number, y: number, text: string, isBeside: boolean}} Landmark of a box; x, y: left end and
 *   middle of the text, CSS px
 */
import { textWidth } from "./measure.js";

/** A title strip of this height on the screen, CSS px, carries its name itself. */
const STRIP_PX = 9;
/** What is lower than this on the screen is no landmark. CSS px. */
const LEAST_PX = 15;
/** A name on a module covers some of it: only where that is a small part. CSS px. */
const LEAST_INSIDE_PX = 40;
/** A picture narrower than this has room beside it, and none in it. CSS px. */
const STRIP_WIDTH_PX = 110;
/** Of a name that is too long for its module at least so many characters are kept. */
const LEAST_CHARACTERS = 5;
const LINE_PX = 14;
const GAP_PX = 8;
const FONT_PX = 11;
/** Half of what the letters take of a line. */
const INK_PX = 5;

/**
 * @param {Spatial} spatial
 * @param {number[]} panels indices of the open modules in view, enclosing ones first
 * @param {{x: number, y: number, k: number}} transform scene to CSS px
 * @returns {Landmark[]} no two overlap; enclosing modules come first
 */
export function landmarks(spatial, panels, transform) {
  const { scene, children } = spatial;
  const { boxes, width } = scene;
  const { k } = transform;
  const isBeside = width * k < STRIP_WIDTH_PX;
  const least = isBeside ? LEAST_PX : LEAST_INSIDE_PX;
  const candidates = panels
    .filter((index) => boxes[index].headerHeight * k < STRIP_PX && boxes[index].height * k >= least)
    .sort((a, b) => boxes[a].item.depth - boxes[b].item.depth);
  const areOpen = new Set(panels);
  const cardsIn = (/** @type {number[]} */ inside) =>
    inside.filter((child) => !areOpen.has(child)).map((child) => boxes[child]);
  const topCards = candidates.length > 0 ? cardsIn(topBoxes(spatial)) : [];
  /** @type {(Landmark & {right: number})[]} */
  const placed = [];
  for (const index of candidates) {
    // Beside the picture a name says which height it is about, not which of several columns.
    if (isBeside && candidates.some((other) => isAbreast(boxes[index], boxes[other]))) continue;
    const mark = isBeside ? besidePlace(boxes, index, width, transform) : insidePlace(boxes, index, transform);
    if (mark === null) continue;
    const { parent, y: boxY } = boxes[index];
    const around = isBeside ? [] : (parent < 0 ? topCards : cardsIn(children[parent])).concat(cardsIn(children[index]));
    const isFree = (/** @type {number} */ y) =>
      placed.every((other) => Math.abs(other.y - y) >= LINE_PX || other.x > mark.right || other.right < mark.x) &&
      !around.some((card) => isOver({ ...mark, y }, card, transform));
    const above = transform.y + boxY * k - INK_PX - 1;
    const y = (isBeside ? [mark.y] : [mark.y, above, mark.y + LINE_PX]).find(isFree);
    if (y !== undefined) placed.push({ ...mark, index, y, isBeside });
  }
  return placed;
}

/** @type {(a: Box, b: Box) => boolean} whether two modules stand side by side, at least in part */
const isAbreast = (a, b) =>
  (a.x + a.width <= b.x || b.x + b.width <= a.x) && a.y < b.y + b.height && b.y < a.y + a.height;

/** @type {(spatial: Spatial) => number[]} indices, without a look at what is inside */
function topBoxes({ order, after }) {
  const found = [];
  for (let position = 0; position < order.length; position = after[position]) found.push(order[position]);
  return found;
}

/** @typedef {{x: number, y: number, right: number, text: string}} Place */

/** @type {(boxes: Box[], index: number, width: number, transform: {x: number, y: number, k: number}) => Place} */
function besidePlace(boxes, index, width, { x: left, y: top, k }) {
  const { title, subtitle, y } = boxes[index];
  const x = left + width * k + GAP_PX;
  return { x, y: top + y * k + LINE_PX / 2, right: x + widthOf(`${title} ${subtitle}`), text: title };
}

/** @type {(boxes: Box[], index: number, transform: {x: number, y: number, k: number}) => Place | null} */
function insidePlace(boxes, index, { x: left, y: top, k }) {
  const box = boxes[index];
  const text = tailThatFits(box.title, box.width * k - GAP_PX);
  const x = left + box.x * k + GAP_PX / 2;
  const y = top + (box.y + box.headerHeight / 2) * k;
  return text === "" ? null : { x, y, right: x + widthOf(text), text };
}

/** @type {(mark: Place, card: Box, transform: {x: number, y: number, k: number}) => boolean} */
function isOver({ x, y, right }, card, { x: left, y: top, k }) {
  const [cardX, cardY] = [left + card.x * k, top + card.y * k];
  return x < cardX + card.width * k && right > cardX && y - INK_PX < cardY + card.height * k && y + INK_PX > cardY;
}

/** @param {string} text @returns {number} CSS px */
const widthOf = (text) => textWidth(text, FONT_PX, "bold");

/** @type {(name: string, room: number) => string} equal blocks differ in the end of their names; empty where too little fits */
function tailThatFits(name, room) {
  if (widthOf(name) <= room) return name;
  const characters = [...name];
  for (let kept = characters.length - 1; kept >= LEAST_CHARACTERS; kept -= 1) {
    const text = `…${characters.slice(-kept).join("")}`;
    if (widthOf(text) <= room) return text;
  }
  return "";
}
