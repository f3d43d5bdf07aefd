/**
 * What a box looks like from afar: its name only, as large as the box allows, on its colour. Between the distance at
 * which everything is read and the one at which boxes are mere blocks. Pure.
 *
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./theme.js").Palette} Palette
 * @typedef {import("./marks.js").Mark} Mark
 * @typedef {import("./marks.js").BoxLook} BoxLook
 */
import { boxMarks, FONTS, isFailed } from "./marks.js";
import { textWidth } from "./measure.js";
import { familyOf, mix } from "./theme.js";

/** Sizes of text on the screen, CSS px. */
const WANTED_PX = 9;
const LEAST_PX = 6;
/** Text may take this share of a box's height, and that of a title strip. */
const HEIGHT_SHARE = 0.64;
const STRIP_SHARE = 0.9;
const TINT = 0.2;
/** Blocks have no outline; they need more colour. */
export const BLOCK_TINT = 0.5;
/** An open module that is lower than this on the screen looks as if closed if its operations can't be read. CSS px. */
const SUMMARY_PX = 52;
const SUMMARY_SCALE = 0.4;

/**
 * From afar, a module that holds only a few operations says more by its name and colour than by pale shapes in it.
 *
 * @param {import("./spatial.js").Spatial} spatial
 * @param {number} index of a box
 * @param {number} k scale, scene to CSS px
 * @returns {boolean} whether the box is open but drawn like a closed one
 */
export function isSummary({ scene, children }, index, k) {
  const box = scene.boxes[index];
  return (
    k < SUMMARY_SCALE &&
    box?.item.isOpen === true &&
    box.height * k < SUMMARY_PX &&
    children[index].every((child) => scene.boxes[child].item.kind === "node")
  );
}

/** @type {(box: Box) => Box} what is drawn of an open module that looks closed */
export const summaryOf = (box) => ({ ...box, headerHeight: 0, item: { ...box.item, isOpen: false } });

/**
 * @param {Box} box
 * @param {Graph} graph
 * @param {Palette} palette
 * @param {BoxLook} look
 * @param {number} k scale, scene to CSS px
 * @param {boolean} [isNamed] false where something else tells the name
 * @returns {Mark[]}
 */
export function farMarks(box, graph, palette, look, k, isNamed = true) {
  const shapes = boxMarks(box, graph, palette, look)
    .filter((mark) => mark.kind !== "text")
    .filter((mark) => mark.kind === "rect" || mark.fill !== undefined);
  const isTinted = box.item.kind !== "node" && !box.item.isOpen && !look.isHit && !isFailed(box, graph);
  const colour = look.colour ?? palette.families[familyOf(graph.calls[box.item.id]?.type ?? "")];
  const marks = isTinted ? shapes.map((mark) => tinted(mark, palette, colour)) : shapes;
  const title = isNamed ? titleMark(box, graph, palette, k) : null;
  return title ? [...marks, title] : marks;
}

/**
 * @template {import("./marks.js").RectMark | import("./marks.js").PathMark} Shape
 * @param {Shape} mark
 * @param {Palette} palette
 * @param {string} colour
 * @returns {Shape}
 */
function tinted(mark, palette, colour) {
  if (mark.fill !== palette.card) return mark;
  return {
    ...mark,
    fill: mix(palette.card, colour, TINT),
    stroke: mark.stroke === palette.line ? colour : mark.stroke,
  };
}

/** @type {(box: Box, room: number, size: number) => string} a number says nothing alone */
function nameOf({ title, subtitle, badge }, room, size) {
  if (badge) return `${title} ${badge}`;
  const full = `${title} ${subtitle}`;
  return /^\d+$/.test(title) && textWidth(full, size, "bold") <= room ? full : title;
}

/** @type {(box: Box, graph: Graph, palette: Palette, k: number) => Mark | null} null where it could not be read */
export function titleMark(box, graph, palette, k) {
  const isOpen = box.item.isOpen;
  const height = isOpen ? box.headerHeight * STRIP_SHARE : box.height * HEIGHT_SHARE;
  const room = isOpen ? Math.min(box.width - 20, box.width * 0.8) : box.width - 12;
  const face = box.item.kind === "node" ? "mono" : "bold";
  const text = nameOf(box, room, WANTED_PX / k);
  const fitting = room / Math.max(textWidth(text, 1, face), 0.1);
  const size = Math.min(WANTED_PX / k, height, Math.max(fitting, LEAST_PX / k));
  if (size * k < LEAST_PX - 0.01 || room < size * 1.5) return null;
  const kind = graph.nodes[box.item.id]?.kind;
  const isTerminal = box.item.kind === "node" && (kind === "input" || kind === "output");
  const fill = isTerminal ? palette[kind] : isFailed(box, graph) ? palette.bad : palette.ink;
  const font = face === "mono" ? "operation" : "name";
  return {
    kind: "text",
    x: isOpen ? box.x + 12 : box.x + box.width / 2,
    y: box.y + (isOpen ? box.headerHeight : box.height) / 2 + size * 0.36,
    anchor: isOpen ? "start" : "middle",
    runs: [{ text, font, fill }],
    maxWidth: room,
    scale: size / FONTS[font].size,
  };
}
