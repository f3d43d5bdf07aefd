/**
 * Scene to canvas. Each frame paints only what is in view and only as much of it as can be seen: text above a legible
 * size, shapes above a few pixels, below that solid blocks with overlapping ones merged. No listeners, no state: painting
 * the same frame twice changes nothing.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./theme.js").Palette} Palette
 * @typedef {import("./spatial.js").Spatial} Spatial
 * @typedef {import("./marks.js").Mark} Mark
 * @typedef {import("./marks.js").FontName} FontName
 *
 * @typedef {Object} Emphasis what stands out at the moment; indices into scene.boxes and scene.routes
 * @property {Set<number>} selected
 * @property {number} hovered box, or -1
 * @property {number} hoveredRoute route, or -1
 * @property {Set<number>} hits
 * @property {Map<number, number>} upstream routes that lead to the selection, with the steps to it (0: ends there)
 * @property {Map<number, number>} downstream routes that lead away from it, with the steps from it
 * @property {(box: Box) => string | null} colourOf
 * @property {(box: Box) => boolean} hasNote
 *
 * @typedef {Object} Frame
 * @property {Spatial} spatial
 * @property {Graph} graph
 * @property {Palette} palette
 * @property {Emphasis} emphasis
 * @property {{x: number, y: number, k: number}} transform scene to CSS px
 * @property {number} width CSS px
 * @property {number} height CSS px
 * @property {number} ratio device pixels per CSS px
 * @property {Float32Array | null} boxAlpha opacity of each box while moving; null when at rest
 * @property {Float32Array | null} routeAlpha
 */
import { BLOCK_TINT, farMarks, isSummary, summaryOf, titleMark } from "./farmarks.js";
import { landmarks } from "./landmarks.js";
import { arrowPath, boxMarks, FONTS, labelMark, routePath, routeWidth } from "./marks.js";
import { familyOf, levelFill, mix } from "./theme.js";
import { visitBoxes, visitRoutes } from "./spatial.js";

/** Scale from which everything is painted; names are 12.5 px at scale 1, so about 6 px high. */
const TEXT_SCALE = 0.46;
/** Scale from which boxes have shapes and large names; below it they are blocks. */
const SHAPE_SCALE = 0.14;
/** Boxes smaller than this on screen are solid blocks, and what is inside them is left out. CSS px. */
const BLOCK_PX = 3;
/** From afar, open modules narrower than this have no ground of their own, narrower than that no outline. CSS px. */
const PANEL_PX = 5;
const PANEL_LINE_PX = 9;
/** From afar, a screen cell of this size shows one block. CSS px. */
const CELL_PX = 2.5;
/** Routes shorter than this on screen are left out. CSS px. */
const ROUTE_PX = 5;

/** @type {Record<FontName, string>} */
const CSS_FONTS = /** @type {any} */ (
  Object.fromEntries(
    Object.entries(FONTS).map(([name, font]) => [name, `${font.weight} ${font.size}px ${font.family}`]),
  )
);

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Frame} frame
 */
export function paint(context, frame) {
  const { transform, ratio, palette, width, height } = frame;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.globalAlpha = 1;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, width, height);
  context.setTransform(ratio * transform.k, 0, 0, ratio * transform.k, ratio * transform.x, ratio * transform.y);
  context.lineCap = "round";
  context.lineJoin = "round";
  const area = {
    left: -transform.x / transform.k,
    top: -transform.y / transform.k,
    right: (width - transform.x) / transform.k,
    bottom: (height - transform.y) / transform.k,
  };
  const found = collect(frame, area);
  const isAfar = transform.k < TEXT_SCALE && frame.boxAlpha === null;
  const marks = isAfar ? landmarks(frame.spatial, found.panels, transform) : [];
  if (transform.k < SHAPE_SCALE) paintBlocks(context, frame, found);
  else paintInFull(context, frame, found, new Set(marks.map(({ index }) => index)));
  paintLandmarks(context, frame, marks);
}

/** @typedef {{panels: number[], leaves: number[], blocks: number[], routes: number[]}} Found leaves: also what looks closed */

/** @type {(frame: Frame, area: import("./spatial.js").Area) => Found} */
function collect(frame, area) {
  const { spatial, transform } = frame;
  /** @type {Found} */
  const found = { panels: [], leaves: [], blocks: [], routes: [] };
  visitBoxes(spatial, area, BLOCK_PX / transform.k, (index, isWhole) => {
    if (isWhole) {
      found.blocks.push(index);
      return true;
    }
    const isLeaf = !spatial.scene.boxes[index]?.item.isOpen || isSummary(spatial, index, transform.k);
    (isLeaf ? found.leaves : found.panels).push(index);
    return isLeaf;
  });
  visitRoutes(spatial, area, ROUTE_PX / transform.k, (index) => found.routes.push(index));
  return found;
}

/** @type {(context: CanvasRenderingContext2D, frame: Frame, found: Found, named: Set<number>) => void} named: boxes with a landmark */
function paintInFull(context, frame, found, named) {
  const { spatial, graph, palette, transform } = frame;
  const isNear = transform.k >= TEXT_SCALE;
  const paintBox = (/** @type {number} */ index, /** @type {boolean} */ isLeaf) => {
    const box = spatial.scene.boxes[index];
    const shown = isLeaf && box.item.isOpen ? summaryOf(box) : box;
    const look = lookOf(frame, index, box, shown !== box);
    context.globalAlpha = frame.boxAlpha?.[index] ?? 1;
    const marks = isNear
      ? boxMarks(shown, graph, palette, look)
      : farMarks(shown, graph, palette, look, transform.k, !named.has(index));
    for (const mark of marks) paintMark(context, mark);
  };
  for (const index of found.panels) paintBox(index, false);
  paintRoutes(context, frame, found.routes, true);
  for (const index of found.leaves) paintBox(index, true);
  context.globalAlpha = 1;
  if (found.blocks.length > 0) paintBlocks(context, frame, { ...found, panels: [], leaves: [], routes: [] });
  if (isNear) paintLabels(context, frame, found.routes);
}

/** @type {(context: CanvasRenderingContext2D, frame: Frame, indices: number[]) => void} */
function paintLabels(context, frame, indices) {
  const { spatial, palette } = frame;
  for (const index of indices) {
    const halo = levelFill(palette, spatial.ground[index]);
    const mark = labelMark(spatial.scene.routes[index], palette, halo, labelColour(frame, index));
    if (mark === null) continue;
    context.globalAlpha = frame.routeAlpha?.[index] ?? 1;
    paintMark(context, mark);
  }
  context.globalAlpha = 1;
}

/** @type {(context: CanvasRenderingContext2D, frame: Frame, marks: import("./landmarks.js").Landmark[]) => void} */
function paintLandmarks(context, frame, marks) {
  const { palette, spatial, ratio } = frame;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const { index, x, y, text, isBeside } of marks) {
    const { subtitle, item } = spatial.scene.boxes[index];
    const halo = isBeside ? palette.background : levelFill(palette, item.depth);
    const runs = [{ text, font: /** @type {FontName} */ ("badge"), fill: palette.ink }];
    if (isBeside) runs.push({ text: ` ${subtitle}`, font: "detail", fill: palette.muted });
    paintText(context, { kind: "text", x, y: y + 4, anchor: "start", runs, halo });
  }
}

/** @type {(frame: Frame, index: number, box: Box, isShut: boolean) => import("./marks.js").BoxLook} isShut: what is inside isn't drawn */
function lookOf(frame, index, box, isShut) {
  const { emphasis, spatial } = frame;
  const { selected, hits } = emphasis;
  return {
    isSelected: selected.has(index) || (isShut && holds(spatial, index, selected)),
    isHovered: emphasis.hovered === index,
    isHit: hits.has(index) || (isShut && holds(spatial, index, hits)),
    colour: emphasis.colourOf(box),
    hasNote: emphasis.hasNote(box),
  };
}

/** @type {(spatial: Spatial, index: number, boxes: Set<number>) => boolean} whether one of the boxes is in a box */
const holds = ({ children }, index, boxes) => boxes.size > 0 && children[index].some((child) => boxes.has(child));

/** @type {(frame: Frame, index: number, plain: string) => string} */
function routeColour(frame, index, plain) {
  const { emphasis, palette, spatial } = frame;
  if (emphasis.hoveredRoute === index) return palette.selected;
  const up = emphasis.upstream.get(index);
  if (up !== undefined) return up === 0 ? palette.upstream : palette.farUpstream;
  const down = emphasis.downstream.get(index);
  if (down !== undefined) return down === 0 ? palette.downstream : palette.farDownstream;
  const route = spatial.scene.routes[index];
  const isTouched = emphasis.hovered >= 0 && (route?.tail === emphasis.hovered || route?.head === emphasis.hovered);
  return isTouched ? palette.selected : plain;
}

/** Faint colours are for lines only. @type {(frame: Frame, index: number) => string} */
function labelColour(frame, index) {
  const { palette } = frame;
  const colour = routeColour(frame, index, palette.muted);
  return colour === palette.farUpstream || colour === palette.farDownstream ? palette.muted : colour;
}

/**
 * Emphasised routes come last, so that plain ones don't cross over them.
 *
 * @type {(context: CanvasRenderingContext2D, frame: Frame, indices: number[], withArrows: boolean) => void}
 */
function paintRoutes(context, frame, indices, withArrows) {
  const { palette, spatial } = frame;
  const strong = /** @type {[number, string][]} */ ([]);
  for (const index of indices) {
    const colour = routeColour(frame, index, palette.edge);
    if (colour === palette.edge) paintRoute(context, frame, index, colour, withArrows, 0);
    else strong.push([index, colour]);
  }
  for (const [index, colour] of strong) paintRoute(context, frame, index, colour, withArrows, 0.8);
  context.globalAlpha = spatial.scene.routes.length > 0 ? 1 : context.globalAlpha;
}

/** @type {(context: CanvasRenderingContext2D, frame: Frame, index: number, colour: string, withArrow: boolean, extra: number) => void} */
function paintRoute(context, frame, index, colour, withArrow, extra) {
  const route = frame.spatial.scene.routes[index];
  if (!route) return;
  const alpha = frame.routeAlpha?.[index] ?? 1;
  if (alpha <= 0) return;
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.lineWidth = Math.max(routeWidth(route) + extra, 0.7 / frame.transform.k);
  context.stroke(pathOf(route, routePath));
  if (!withArrow) return;
  context.fillStyle = colour;
  context.fill(pathOf(route, arrowPath));
}

/**
 * Paths at rest are the same on every frame: they are kept with the route, which a new layout replaces.
 *
 * @type {WeakMap<Function, WeakMap<object, Path2D>>}
 */
const paths = new WeakMap();

/** @type {(route: import("./types.js").Route, build: (route: import("./types.js").Route) => string) => Path2D} */
function pathOf(route, build) {
  let kept = paths.get(build);
  if (!kept) paths.set(build, (kept = new WeakMap()));
  let path = kept.get(route);
  if (!path) kept.set(route, (path = new Path2D(build(route))));
  return path;
}

/** @type {(context: CanvasRenderingContext2D, mark: Mark) => void} */
function paintMark(context, mark) {
  if (mark.kind === "text") {
    paintText(context, mark);
    return;
  }
  if (mark.dash) context.setLineDash(mark.dash);
  if (mark.kind === "rect") {
    context.beginPath();
    context.roundRect(mark.x, mark.y, Math.max(mark.width, 0), Math.max(mark.height, 0), Math.max(mark.radius, 0));
    if (mark.fill) context.fillStyle = mark.fill;
    if (mark.fill) context.fill();
    if (mark.stroke) strokeWith(context, mark);
  } else {
    const path = new Path2D(mark.d);
    if (mark.fill) context.fillStyle = mark.fill;
    if (mark.fill) context.fill(path);
    if (mark.stroke) strokeWith(context, mark, path);
  }
  if (mark.dash) context.setLineDash([]);
}

/** @type {(context: CanvasRenderingContext2D, mark: {stroke?: string, lineWidth?: number}, path?: Path2D) => void} */
function strokeWith(context, mark, path) {
  context.strokeStyle = /** @type {string} */ (mark.stroke);
  context.lineWidth = mark.lineWidth ?? 1;
  if (path) context.stroke(path);
  else context.stroke();
}

/** @type {(context: CanvasRenderingContext2D, mark: import("./marks.js").TextMark) => void} */
function paintText(context, mark) {
  if (mark.scale !== undefined) {
    const { scale, x, y, maxWidth = Infinity } = mark;
    context.save();
    context.translate(x, y);
    context.scale(scale, scale);
    paintText(context, { ...mark, x: 0, y: 0, maxWidth: maxWidth / scale, scale: undefined });
    context.restore();
    return;
  }
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  let room = mark.maxWidth ?? Infinity;
  const pieces = mark.runs.map((run) => {
    const text = elide(context, run, room);
    const width = textWidth(context, text, run.font);
    room -= width;
    return { ...run, text, width };
  });
  const total = pieces.reduce((sum, piece) => sum + piece.width, 0);
  let x = mark.x - (mark.anchor === "middle" ? total / 2 : mark.anchor === "end" ? total : 0);
  for (const piece of pieces) {
    context.font = CSS_FONTS[piece.font];
    if (mark.halo) {
      context.strokeStyle = mark.halo;
      context.lineWidth = 4;
      context.strokeText(piece.text, x, mark.y);
    }
    context.fillStyle = piece.fill;
    context.fillText(piece.text, x, mark.y);
    x += piece.width;
  }
}

/** @type {Map<string, number>} measured once per text and font; a page draws the same few words again and again */
const widths = new Map();
const MOST_WIDTHS = 20000;

/** @type {(context: CanvasRenderingContext2D, text: string, font: FontName) => number} */
function textWidth(context, text, font) {
  const key = `${font} ${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  context.font = CSS_FONTS[font];
  const width = context.measureText(text).width;
  if (widths.size > MOST_WIDTHS) widths.clear();
  widths.set(key, width);
  return width;
}

/** @type {(context: CanvasRenderingContext2D, run: import("./marks.js").Run, room: number) => string} */
function elide(context, run, room) {
  if (textWidth(context, run.text, run.font) <= room + 0.5) return run.text;
  let low = 0;
  let high = run.text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(context, `${run.text.slice(0, middle)}…`, run.font) <= room) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? "" : `${run.text.slice(0, low)}…`;
}

/**
 * Far away: panels as plain rectangles, everything else as blocks of its colour; blocks that fall on a cell of the screen
 * that already has one are left out.
 *
 * @type {(context: CanvasRenderingContext2D, frame: Frame, found: Found) => void}
 */
function paintBlocks(context, frame, found) {
  const { spatial, transform, palette, width, height } = frame;
  const { boxes } = spatial.scene;
  const line = 1 / transform.k;
  for (const index of found.panels) {
    const box = boxes[index];
    const side = Math.min(box.width, box.height) * transform.k;
    if (side < PANEL_PX) continue;
    context.fillStyle = levelFill(palette, box.item.depth);
    context.fillRect(box.x, box.y, box.width, box.height);
    if (side < PANEL_LINE_PX) continue;
    context.strokeStyle = palette.line;
    context.lineWidth = line;
    context.strokeRect(box.x, box.y, box.width, box.height);
  }
  paintRoutes(context, frame, found.routes, false);
  const columns = Math.ceil(width / CELL_PX) + 2;
  const taken = new Uint8Array(columns * (Math.ceil(height / CELL_PX) + 2));
  let last = "";
  const block = (/** @type {number} */ index) => {
    const box = /** @type {Box} */ (boxes[index]);
    const column = Math.floor((box.x * transform.k + transform.x) / CELL_PX);
    const row = Math.floor((box.y * transform.k + transform.y) / CELL_PX);
    const special = specialColour(frame, index, box);
    if (special === null && column >= 0 && row >= 0 && column < columns) {
      const at = row * columns + column;
      if (taken[at]) return;
      taken[at] = 1;
    }
    const colour = special ?? blockColour(frame, box);
    if (colour !== last) context.fillStyle = last = colour;
    const least = special === null ? line : 4 * line;
    context.fillRect(box.x, box.y, Math.max(box.width, least), Math.max(box.height, least));
  };
  for (const index of found.blocks) block(index);
  for (const index of found.leaves) block(index);
  for (const index of found.leaves) paintBlockName(context, frame, index);
}

/** Of a module that looks closed: others are too small at this scale. @type {(context: CanvasRenderingContext2D, frame: Frame, index: number) => void} */
function paintBlockName(context, { spatial, graph, palette, transform }, index) {
  const box = spatial.scene.boxes[index];
  const mark = box.item.isOpen ? titleMark(summaryOf(box), graph, palette, transform.k) : null;
  if (mark) paintMark(context, mark);
}

/** @type {(frame: Frame, index: number, box: Box) => string | null} of a block that must not be missed, or that has such inside */
function specialColour({ emphasis, palette, spatial }, index, { item }) {
  const isIn = (/** @type {Set<number>} */ boxes) => boxes.has(index) || (item.isOpen && holds(spatial, index, boxes));
  if (isIn(emphasis.selected)) return palette.selected;
  return isIn(emphasis.hits) ? palette.hit : null;
}

/** @type {(frame: Frame, box: Box) => string} */
function blockColour(frame, box) {
  const { emphasis, graph, palette } = frame;
  const row = box.item.kind === "node" ? graph.nodes[box.item.id] : graph.calls[box.item.id];
  if (row?.status === "failed") return palette.bad;
  const colour = emphasis.colourOf(box);
  if (colour) return colour;
  if (box.item.kind !== "node") {
    return mix(palette.card, palette.families[familyOf(/** @type {any} */ (row)?.type ?? "")], BLOCK_TINT);
  }
  const kind = /** @type {any} */ (row)?.kind;
  return kind === "input" || kind === "output" || kind === "parameter" || kind === "buffer"
    ? palette[/** @type {"input"} */ (kind)]
    : palette.outline;
}
