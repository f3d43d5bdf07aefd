/**
 * What a box or a route looks like, as a list of marks: rectangles, paths and texts in px of the scene. Canvas and SVG
 * both draw these marks, so that the export looks like the screen. Pure.
 *
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./types.js").Route} Route
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./theme.js").Palette} Palette
 *
 * @typedef {{text: string, font: FontName, fill: string}} Run
 * @typedef {{kind: "rect", x: number, y: number, width: number, height: number, radius: number, fill?: string,
 *   stroke?: string, lineWidth?: number, dash?: number[]}} RectMark
 * @typedef {{kind: "path", d: string, fill?: string, stroke?: string, lineWidth?: number, dash?: number[]}} PathMark
 * @typedef {{kind: "text", x: number, y: number, anchor: "start"|"middle"|"end", runs: Run[], halo?: string,
 *   maxWidth?: number,
 *   scale?: number}} TextMark y is the baseline; scale enlarges the fonts
 * @typedef {RectMark | PathMark | TextMark} Mark
 *
 * @typedef {Object} BoxLook how a box stands out at the moment
 * @property {boolean} isSelected
 * @property {boolean} isHovered
 * @property {boolean} isHit found by the search or highlighted from Python
 * @property {string | null} colour of its bar, from "colour by"; null where that says nothing
 * @property {boolean} hasNote a note from the tracer or from Python
 */
import { textWidth } from "./measure.js";
import { familyOf, levelFill } from "./theme.js";

const SANS = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", "Liberation Sans", Arial, sans-serif';
const MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';

/** @typedef {"name"|"type"|"detail"|"badge"|"operation"|"operator"|"label"|"mark"} FontName */

/** @type {Record<FontName, {size: number, weight: number, family: string}>} sizes in px of the scene */
export const FONTS = {
  name: { size: 12.5, weight: 600, family: SANS },
  type: { size: 12.5, weight: 400, family: SANS },
  detail: { size: 11, weight: 400, family: SANS },
  badge: { size: 11, weight: 600, family: SANS },
  operation: { size: 12, weight: 400, family: MONO },
  operator: { size: 15, weight: 400, family: SANS },
  label: { size: 10.5, weight: 400, family: MONO },
  mark: { size: 11, weight: 700, family: SANS },
};

/** @type {BoxLook} */
export const PLAIN_LOOK = { isSelected: false, isHovered: false, isHit: false, colour: null, hasNote: false };

/** Width of the open/close button at the left end of a title, in px. */
export const HANDLE_WIDTH = 28;

/** Sizes of shapes in px. */
const CARD_RADIUS = 8;
const SCOPE_RADIUS = 10;
const STACK_STEP = 4;
const ARROW_LENGTH = 7;
const ARROW_HALF_WIDTH = 3.6;
const CORNER = 8;

/** @param {Box} box @returns {boolean} drawn as a circle with a sign in it */
const isOperator = (box) => box.item.kind === "node" && box.width <= box.height + 1;

/**
 * The part of a box that opens and closes it, in px of the scene.
 *
 * @param {Box} box
 * @returns {{x: number, y: number, width: number, height: number} | null} null where nothing opens
 */
export function handleRect(box) {
  if (box.item.isOpen) return { x: box.x, y: box.y, width: HANDLE_WIDTH, height: Math.max(box.headerHeight, 24) };
  if (!box.item.isOpenable) return null;
  return { x: box.x, y: box.y, width: HANDLE_WIDTH, height: box.height };
}

/**
 * @param {Box} box
 * @param {Graph} graph
 * @returns {boolean} whether the pass stopped in it
 */
export function isFailed(box, graph) {
  const { item } = box;
  const row = item.kind === "node" ? graph.nodes[item.id] : graph.calls[item.id];
  return row?.status === "failed" || item.members.some((id) => graph.calls[id]?.status === "failed");
}

/**
 * @param {Box} box
 * @param {Graph} graph
 * @param {Palette} palette
 * @param {BoxLook} look
 * @returns {Mark[]}
 */
export function boxMarks(box, graph, palette, look) {
  const marks = plainMarks(box, graph, palette, look);
  // The mark of a failure stands where the dot would, and says to look at the panel too.
  return look.hasNote && !isFailed(box, graph) ? [...marks, noteMark(box, palette)] : marks;
}

/** A dot on the upper right corner: there is something to read in the panel. @type {(box: Box, palette: Palette) => PathMark} */
function noteMark(box, palette) {
  const x = box.x + box.width - 6;
  const d = `M${x - 5} ${box.y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z`;
  return { kind: "path", d, fill: palette.hit, stroke: palette.card, lineWidth: 1.5 };
}

/** @type {(box: Box, graph: Graph, palette: Palette, look: BoxLook) => Mark[]} */
function plainMarks(box, graph, palette, look) {
  if (box.item.kind !== "node") {
    return box.item.isOpen ? scopeMarks(box, graph, palette, look) : cardMarks(box, graph, palette, look);
  }
  const node = graph.nodes[box.item.id];
  switch (node?.kind) {
    case "input":
    case "output":
      return terminalMarks(box, node.kind, palette, look);
    case "parameter":
    case "buffer":
    case "constant":
      return stateMarks(box, node.kind, palette, look);
    default:
      return operationMarks(box, graph, palette, look);
  }
}

/**
 * @param {Palette} palette
 * @param {BoxLook} look
 * @param {string} plain outline of the box when nothing is special
 * @param {number} plainWidth
 */
function outline(palette, look, plain, plainWidth) {
  if (look.isSelected) return { stroke: palette.selected, lineWidth: 2.4 };
  if (look.isHit) return { stroke: palette.hit, lineWidth: 2.2 };
  if (look.isHovered) return { stroke: palette.selected, lineWidth: Math.max(1.4, plainWidth) };
  return { stroke: plain, lineWidth: plainWidth };
}

/** @type {(box: Box, graph: Graph, palette: Palette, look: BoxLook) => Mark[]} */
function cardMarks(box, graph, palette, look) {
  const { x, y, width, height, item } = box;
  const failed = isFailed(box, graph);
  const fill = failed ? palette.badFill : look.isHit ? palette.hitFill : palette.card;
  const edge = outline(palette, look, failed ? palette.bad : palette.line, failed ? 2 : 1.2);
  /** @type {Mark[]} */
  const marks = [];
  if (item.kind === "repeat") {
    for (const step of [2, 1]) {
      const shift = step * STACK_STEP;
      const plain = { fill: palette.card, stroke: palette.line, lineWidth: 1.2 };
      marks.push({
        kind: "rect",
        x: x + shift,
        y: y + shift,
        width: width - shift,
        height: height,
        radius: CARD_RADIUS,
        ...plain,
      });
    }
  }
  marks.push({ kind: "rect", x, y, width, height, radius: CARD_RADIUS, fill, ...edge });
  if (failed) marks.push(hatch(box, palette));
  const bar = look.colour ?? (failed ? palette.bad : palette.families[familyOf(graph.calls[item.id]?.type ?? "")]);
  marks.push({
    kind: "rect",
    x,
    y: y + CARD_RADIUS,
    width: barWidth(look),
    height: height - 2 * CARD_RADIUS,
    radius: 1.5,
    fill: bar,
  });
  const firstLine = box.detail ? y + height / 2 - 8 : y + height / 2;
  if (item.isOpenable) marks.push(chevron(x + 14, firstLine, false, palette));
  marks.push(...titleMarks(box, firstLine, palette, failed));
  return marks;
}

/** Colours that somebody asked for are seen at once. @param {BoxLook} look */
const barWidth = (look) => (look.colour === null ? 3.5 : 8);

/** @type {(box: Box, firstLine: number, palette: Palette, failed: boolean) => Mark[]} */
function titleMarks(box, firstLine, palette, failed) {
  const left = box.x + (box.item.isOpenable || box.item.isOpen ? HANDLE_WIDTH : 14);
  const badgeWidth = box.badge ? 14 + 7 * box.badge.length : 0;
  const right = box.x + box.width - 10 - (badgeWidth ? badgeWidth + 6 : 0) - (failed ? 20 : 0);
  /** @type {Mark[]} */
  const marks = [titleText(box, left, firstLine + 4.4, right - left, palette)];
  if (box.detail && box.headerHeight === 0) {
    const runs = [{ text: box.detail, font: /** @type {FontName} */ ("detail"), fill: palette.muted }];
    const maxWidth = box.x + box.width - 8 - left;
    marks.push({ kind: "text", x: left, y: firstLine + 20, anchor: "start", runs, maxWidth });
  }
  if (box.badge)
    marks.push(...badgeMarks(box.x + box.width - 9 - badgeWidth, firstLine - 8.5, badgeWidth, box.badge, palette));
  if (failed)
    marks.push(...warningMarks(box.x + box.width - 18 - (badgeWidth ? badgeWidth + 4 : 0), firstLine, palette));
  return marks;
}

/** @type {(box: Box, x: number, y: number, maxWidth: number, palette: Palette) => TextMark} */
function titleText(box, x, y, maxWidth, palette) {
  /** @type {Run[]} */
  const runs = [{ text: box.title, font: "name", fill: palette.ink }];
  if (box.subtitle) runs.push({ text: ` ${box.subtitle}`, font: "type", fill: palette.muted });
  return { kind: "text", x, y, anchor: "start", runs, maxWidth };
}

/** @type {(x: number, y: number, width: number, text: string, palette: Palette) => Mark[]} */
function badgeMarks(x, y, width, text, palette) {
  const height = 17;
  const fill = /** @type {string} */ (palette.levels[1]);
  return [
    { kind: "rect", x, y, width, height, radius: height / 2, fill, stroke: palette.control, lineWidth: 1 },
    {
      kind: "text",
      x: x + width / 2,
      y: y + 12.5,
      anchor: "middle",
      runs: [{ text, font: "badge", fill: palette.ink }],
    },
  ];
}

/** @type {(box: Box, graph: Graph, palette: Palette, look: BoxLook) => Mark[]} */
function scopeMarks(box, graph, palette, look) {
  const { x, y, width, height, item } = box;
  const failed = isFailed(box, graph);
  const edge = outline(palette, look, failed ? palette.bad : palette.line, failed ? 2 : 1.2);
  const bar = look.colour ?? palette.families[familyOf(graph.calls[item.id]?.type ?? "")];
  const middle = y + Math.max(box.headerHeight, 24) / 2;
  /** @type {Mark[]} */
  const marks = [
    { kind: "rect", x, y, width, height, radius: SCOPE_RADIUS, fill: levelFill(palette, item.depth), ...edge },
    { kind: "rect", x, y: middle - 8, width: barWidth(look), height: 16, radius: 1.5, fill: bar },
    chevron(x + 13, middle, true, palette),
  ];
  const room = width - HANDLE_WIDTH - 12 - (failed ? 22 : 0);
  marks.push(titleText(box, x + HANDLE_WIDTH + 2, middle + 4.4, room, palette));
  const titleWidth =
    textWidth(box.title, FONTS.name.size, "bold") + textWidth(` ${box.subtitle}`, FONTS.type.size, "sans");
  // All of the numbers, or the first of them, or none: as the room allows.
  const detail = [box.detail, box.detail.split(" · ")[0]].find(
    (text) => text && titleWidth + textWidth(text, FONTS.detail.size, "sans") + 24 <= room,
  );
  if (detail) {
    const runs = [{ text: detail, font: /** @type {FontName} */ ("detail"), fill: palette.muted }];
    marks.push({ kind: "text", x: x + width - 12 - (failed ? 22 : 0), y: middle + 4, anchor: "end", runs });
  }
  if (failed) marks.push(...warningMarks(x + width - 20, middle, palette));
  return marks;
}

/** @type {(box: Box, kind: "input"|"output", palette: Palette, look: BoxLook) => Mark[]} */
function terminalMarks(box, kind, palette, look) {
  const { x, y, width, height } = box;
  const colour = palette[kind];
  const edge = outline(palette, look, colour, 1.8);
  const fill = look.isHit ? palette.hitFill : palette.card;
  /** @type {Mark[]} */
  const marks = [{ kind: "rect", x, y, width, height, radius: height / 2, fill, ...edge }];
  if (kind === "output") {
    const inner = { x: x + 3, y: y + 3, width: width - 6, height: height - 6, radius: height / 2 - 3 };
    marks.push({ kind: "rect", ...inner, stroke: colour, lineWidth: 0.9 });
  }
  marks.push(centred(box, "name", colour));
  return marks;
}

/** @type {(box: Box, kind: "parameter"|"buffer"|"constant", palette: Palette, look: BoxLook) => Mark[]} */
function stateMarks(box, kind, palette, look) {
  const { x, y, width, height } = box;
  const colour = palette[kind];
  const edge = outline(palette, look, colour, 1.2);
  const fill = look.isHit ? palette.hitFill : palette.card;
  const text = centred(box, "operation", kind === "constant" ? palette.ink : colour);
  if (kind === "constant") {
    const cut = Math.min(7, height / 3);
    const d =
      `M${x + cut} ${y}H${x + width - cut}L${x + width} ${y + cut}V${y + height - cut}L${x + width - cut} ${y + height}` +
      `H${x + cut}L${x} ${y + height - cut}V${y + cut}Z`;
    return [{ kind: "path", d, fill, ...edge }, text];
  }
  const dash = kind === "buffer" && !look.isSelected ? { dash: [4, 3] } : {};
  return [
    { kind: "rect", x, y, width, height, radius: 3, fill, ...edge, ...dash },
    { kind: "rect", x: x + 3, y: y + 4, width: 2, height: height - 8, radius: 1, fill: colour },
    text,
  ];
}

/** @type {(box: Box, graph: Graph, palette: Palette, look: BoxLook) => Mark[]} */
function operationMarks(box, graph, palette, look) {
  const { x, y, width, height } = box;
  const failed = isFailed(box, graph);
  const isOpaque = graph.nodes[box.item.id]?.kind === "opaque";
  const fill = failed ? palette.badFill : look.isHit ? palette.hitFill : palette.card;
  const edge = outline(
    palette,
    look,
    look.colour ?? (failed ? palette.bad : palette.outline),
    failed ? 2.2 : look.colour ? 2 : 1.1,
  );
  /** @type {Mark[]} */
  const marks = [{ kind: "rect", x, y, width, height, radius: height / 2, fill, ...edge }];
  if (isOpaque) {
    const inner = { x: x + 3, y: y + 3, width: width - 6, height: height - 6, radius: height / 2 - 3 };
    marks.push({ kind: "rect", ...inner, stroke: palette.outline, lineWidth: 1, dash: [3, 2.5] });
  }
  marks.push(centred(box, isOperator(box) ? "operator" : "operation", failed ? palette.bad : palette.ink));
  if (failed) marks.push(...warningMarks(x + width - 4, y + 2, palette));
  return marks;
}

/** @type {(box: Box, font: FontName, fill: string) => TextMark} */
function centred(box, font, fill) {
  const baseline = box.y + box.height / 2 + FONTS[font].size * 0.36;
  const maxWidth = font === "operator" ? box.width : box.width - 14;
  return {
    kind: "text",
    x: box.x + box.width / 2,
    y: baseline,
    anchor: "middle",
    runs: [{ text: box.title, font, fill }],
    maxWidth,
  };
}

/** @type {(x: number, y: number, isOpen: boolean, palette: Palette) => PathMark} */
function chevron(x, y, isOpen, palette) {
  const d = isOpen ? `M${x} ${y - 2}l4.5 5l4.5 -5` : `M${x} ${y - 4.5}l5 4.5l-5 4.5`;
  return { kind: "path", d, stroke: palette.muted, lineWidth: 1.7 };
}

/** Slanted lines: a failed box can be told without colour. @type {(box: Box, palette: Palette) => PathMark} */
function hatch(box, palette) {
  const step = 9;
  const top = box.y + 2;
  const bottom = box.y + box.height - 2;
  const rise = bottom - top;
  const first = box.x + box.width - Math.min(box.width * 0.3, 60);
  let d = "";
  for (let x = first; x + rise < box.x + box.width - 3; x += step) d += `M${x} ${bottom}L${x + rise} ${top}`;
  return { kind: "path", d, stroke: palette.bad, lineWidth: 0.5 };
}

/** A triangle with an exclamation mark around (x, y). @type {(x: number, y: number, palette: Palette) => Mark[]} */
function warningMarks(x, y, palette) {
  return [
    {
      kind: "path",
      d: `M${x} ${y - 8}L${x + 9} ${y + 7}H${x - 9}Z`,
      fill: palette.bad,
      stroke: palette.bad,
      lineWidth: 1.5,
    },
    {
      kind: "path",
      d: `M${x} ${y - 3.5}V${y + 1.5}M${x} ${y + 4.2}V${y + 4.8}`,
      stroke: palette.badFill,
      lineWidth: 1.8,
    },
  ];
}

/**
 * The line of a route as SVG path data.
 *
 * @param {Route} route
 * @returns {string}
 */
export function routePath(route) {
  const p = route.points;
  if (route.curve === "bezier") {
    let d = `M${round(p[0])} ${round(p[1])}`;
    for (let i = 2; i + 5 < p.length; i += 6) {
      d += `C${round(p[i])} ${round(p[i + 1])} ${round(p[i + 2])} ${round(p[i + 3])} ${round(p[i + 4])} ${round(p[i + 5])}`;
    }
    return d;
  }
  return roundedLine(p);
}

/** @param {number | undefined} value @returns {number} to a hundredth: enough for the eye, and short */
const round = (value) => Math.round(/** @type {number} */ (value) * 100) / 100;

/** @param {number[]} p */
function roundedLine(p) {
  let d = `M${round(p[0])} ${round(p[1])}`;
  for (let i = 2; i + 3 < p.length; i += 2) {
    const [x0, y0, x1, y1, x2, y2] = /** @type {[number, number, number, number, number, number]} */ (
      p.slice(i - 2, i + 4)
    );
    const before = Math.hypot(x1 - x0, y1 - y0);
    const after = Math.hypot(x2 - x1, y2 - y1);
    const radius = Math.min(CORNER, before / 2, after / 2);
    if (radius < 0.5) {
      d += `L${round(x1)} ${round(y1)}`;
      continue;
    }
    const inX = x1 - ((x1 - x0) / before) * radius;
    const inY = y1 - ((y1 - y0) / before) * radius;
    const outX = x1 + ((x2 - x1) / after) * radius;
    const outY = y1 + ((y2 - y1) / after) * radius;
    d += `L${round(inX)} ${round(inY)}Q${round(x1)} ${round(y1)} ${round(outX)} ${round(outY)}`;
  }
  return `${d}L${round(p[p.length - 2])} ${round(p[p.length - 1])}`;
}

/** @param {Route} route @returns {number} width of its line in px */
export const routeWidth = (route) => 1.2 + 1.8 * route.weight;

/**
 * The arrowhead at the end of a route, its tip on the last point.
 *
 * @param {Route} route
 * @returns {string} SVG path data
 */
export function arrowPath(route) {
  const p = route.points;
  const n = p.length;
  const tipX = /** @type {number} */ (p[n - 2]);
  const tipY = /** @type {number} */ (p[n - 1]);
  let dx = 0;
  let dy = 0;
  // Control points may coincide with the end; the direction is that of the last point that differs.
  for (let i = n - 4; i >= 0 && dx === 0 && dy === 0; i -= 2) {
    dx = tipX - /** @type {number} */ (p[i]);
    dy = tipY - /** @type {number} */ (p[i + 1]);
  }
  const length = Math.hypot(dx, dy) || 1;
  const ux = length === 1 && dx === 0 && dy === 0 ? 0 : dx / length;
  const uy = length === 1 && dx === 0 && dy === 0 ? 1 : dy / length;
  const scale = 1 + route.weight * 0.5;
  const back = ARROW_LENGTH * scale;
  const half = ARROW_HALF_WIDTH * scale;
  const baseX = tipX - ux * back;
  const baseY = tipY - uy * back;
  return (
    `M${round(tipX)} ${round(tipY)}L${round(baseX - uy * half)} ${round(baseY + ux * half)}` +
    `L${round(baseX + uy * half)} ${round(baseY - ux * half)}Z`
  );
}

/**
 * @param {Route} route
 * @param {Palette} palette
 * @param {string} halo colour of what lies under the label
 * @param {string} colour of the text
 * @returns {TextMark | null}
 */
export function labelMark(route, palette, halo, colour = palette.muted) {
  const { label } = route;
  if (!label) return null;
  const runs = [{ text: label.text, font: /** @type {FontName} */ ("label"), fill: colour }];
  return {
    kind: "text",
    x: label.x,
    y: label.y + label.height / 2 + FONTS.label.size * 0.36,
    anchor: "start",
    runs,
    halo,
  };
}
