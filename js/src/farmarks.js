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
/** Text may take this share of a box's height. */
const HEIGHT_SHARE = 0.64;
const TINT = 0.2;

/**
 * @param {Box} box
 * @param {Graph} graph
 * @param {Palette} palette
 * @param {BoxLook} look
 * @param {number} k scale, scene to CSS px
 * @returns {Mark[]}
 */
export function farMarks(box, graph, palette, look, k) {
  const shapes = boxMarks(box, graph, palette, look)
    .filter((mark) => mark.kind !== "text")
    .filter((mark) => mark.kind === "rect" || mark.fill !== undefined);
  const isTinted = box.item.kind !== "node" && !box.item.isOpen && !look.isHit && !isFailed(box, graph);
  const colour = look.colour ?? palette.families[familyOf(graph.calls[box.item.id]?.type ?? "")];
  const marks = isTinted ? shapes.map((mark) => tinted(mark, palette, colour)) : shapes;
  const title = titleMark(box, graph, palette, k);
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

/** @type {(box: Box, graph: Graph, palette: Palette, k: number) => Mark | null} */
function titleMark(box, graph, palette, k) {
  const isOpen = box.item.isOpen;
  const height = isOpen ? box.headerHeight : box.height;
  const room = isOpen ? Math.min(box.width - 20, box.width * 0.8) : box.width - 12;
  const text = box.badge ? `${box.title} ${box.badge}` : box.title;
  const face = box.item.kind === "node" ? "mono" : "bold";
  const fitting = room / Math.max(textWidth(text, 1, face), 0.1);
  const size = Math.min(WANTED_PX / k, height * HEIGHT_SHARE, Math.max(fitting, LEAST_PX / k));
  if (size * k < LEAST_PX - 0.01 || room < size * 1.5) return null;
  const kind = graph.nodes[box.item.id]?.kind;
  const isTerminal = box.item.kind === "node" && (kind === "input" || kind === "output");
  const fill = isTerminal ? palette[kind] : isFailed(box, graph) ? palette.bad : palette.ink;
  const font = face === "mono" ? "operation" : "name";
  return {
    kind: "text",
    x: isOpen ? box.x + 12 : box.x + box.width / 2,
    y: box.y + height / 2 + size * 0.36,
    anchor: isOpen ? "start" : "middle",
    runs: [{ text, font, fill }],
    maxWidth: room,
    scale: size / FONTS[font].size,
  };
}
