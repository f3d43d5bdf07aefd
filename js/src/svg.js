/**
 * Scene to SVG text, for exports and for headless use. Draws the same marks as the canvas. Pure.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./theme.js").Palette} Palette
 * @typedef {import("./marks.js").Mark} Mark
 */
import { arrowPath, boxMarks, FONTS, labelMark, PLAIN_LOOK, routePath, routeWidth } from "./marks.js";
import { buildSpatial } from "./spatial.js";
import { levelFill } from "./theme.js";

/** White around the picture, in px. */
export const MARGIN = 16;

/**
 * Average advance of the characters of a font, as a share of its size: enough to tell whether a text fits. SVG text has no
 * ellipsis, and an exporter has no fonts to measure.
 */
const ADVANCE = { sans: 0.56, mono: 0.602 };

/**
 * @param {Scene} scene
 * @param {Graph} graph
 * @param {Palette} palette
 * @param {{colourOf?: (box: import("./types.js").Box) => string | null, isHit?: (box: import("./types.js").Box) => boolean}} [look]
 * @returns {string} a whole SVG document
 */
export function sceneToSvg(scene, graph, palette, look = {}) {
  const spatial = buildSpatial(scene);
  const width = Math.ceil(scene.width + 2 * MARGIN);
  const height = Math.ceil(scene.height + 2 * MARGIN);
  const marksOf = (/** @type {import("./types.js").Box} */ box) =>
    boxMarks(box, graph, palette, {
      ...PLAIN_LOOK,
      colour: look.colourOf?.(box) ?? null,
      isHit: look.isHit?.(box) ?? false,
    });
  const group = (/** @type {import("./types.js").Box} */ box) =>
    `<g class="atlas-${box.item.kind}" data-name="${escapeXml(box.item.name)}">${marksOf(box).map(markToSvg).join("")}</g>`;
  const panels = scene.boxes.filter((box) => box.item.isOpen).map(group);
  const leaves = scene.boxes.filter((box) => !box.item.isOpen).map(group);
  const routes = scene.routes.map((route) => {
    const line = `<path d="${routePath(route)}" fill="none" stroke="${palette.edge}" stroke-width="${tidy(routeWidth(route))}"/>`;
    return `${line}<path d="${arrowPath(route)}" fill="${palette.edge}"/>`;
  });
  const labels = scene.routes.map((route, index) => {
    const mark = labelMark(route, palette, levelFill(palette, spatial.ground[index] ?? -1));
    return mark ? markToSvg(mark) : "";
  });
  const title = escapeXml(graph.title);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${-MARGIN} ${-MARGIN} ${width} ${height}"`,
    ` role="img" aria-label="${title}" stroke-linecap="round" stroke-linejoin="round">`,
    `<title>${title}</title>`,
    `<rect x="${-MARGIN}" y="${-MARGIN}" width="${width}" height="${height}" fill="${palette.background}"/>`,
    ...panels,
    `<g class="atlas-edges">${routes.join("")}</g>`,
    ...leaves,
    `<g class="atlas-labels">${labels.join("")}</g>`,
    "</svg>\n",
  ].join("\n");
}

/** @param {Mark} mark */
function markToSvg(mark) {
  if (mark.kind === "text") return textToSvg(mark);
  const paintAttributes =
    ` fill="${mark.fill ?? "none"}"` +
    (mark.stroke ? ` stroke="${mark.stroke}" stroke-width="${tidy(mark.lineWidth ?? 1)}"` : "") +
    (mark.dash ? ` stroke-dasharray="${mark.dash.join(" ")}"` : "");
  if (mark.kind === "path")
    return `<path d="${mark.d.replace(/\d+\.\d{3,}/g, (number) => String(tidy(Number(number))))}"${paintAttributes}/>`;
  const { x, y, width, height, radius } = mark;
  return (
    `<rect x="${tidy(x)}" y="${tidy(y)}" width="${tidy(Math.max(width, 0))}" height="${tidy(Math.max(height, 0))}"` +
    ` rx="${tidy(Math.max(radius, 0))}"${paintAttributes}/>`
  );
}

/** @param {import("./marks.js").TextMark} mark */
function textToSvg(mark) {
  const spans = fittingRuns(mark).map(({ text, font: name, fill }) => {
    const font = FONTS[name];
    const weight = font.weight === 400 ? "" : ` font-weight="${font.weight}"`;
    return `<tspan font-size="${font.size}"${weight} fill="${fill}">${escapeXml(text)}</tspan>`;
  });
  const family = FONTS[mark.runs[0]?.font ?? "name"].family.replaceAll('"', "'");
  const halo = mark.halo ? ` paint-order="stroke" stroke="${mark.halo}" stroke-width="4"` : "";
  const anchor = mark.anchor === "start" ? "" : ` text-anchor="${mark.anchor}"`;
  return `<text x="${tidy(mark.x)}" y="${tidy(mark.y)}" font-family="${family}"${anchor}${halo} xml:space="preserve">${spans.join("")}</text>`;
}

/**
 * @param {import("./marks.js").TextMark} mark
 * @returns {import("./marks.js").Run[]} cut to the room that there is
 */
export function fittingRuns(mark) {
  let room = mark.maxWidth ?? Infinity;
  return mark.runs.map((run) => {
    const text = fit(run, room);
    room -= estimatedWidth(text, run.font);
    return { ...run, text };
  });
}

/** @type {(text: string, font: import("./marks.js").FontName) => number} */
function estimatedWidth(text, font) {
  const { size, family } = FONTS[font];
  return text.length * size * (family.includes("monospace") ? ADVANCE.mono : ADVANCE.sans);
}

/** @type {(run: import("./marks.js").Run, room: number) => string} */
function fit(run, room) {
  // The estimate is generous, and the layout leaves room for whole titles: only clear excess is cut.
  if (estimatedWidth(run.text, run.font) <= room * 1.12 + 4) return run.text;
  const perCharacter = estimatedWidth("x", run.font);
  const count = Math.max(Math.floor(room / perCharacter) - 1, 0);
  return count === 0 ? "" : `${run.text.slice(0, count)}…`;
}

/** @param {number} value */
const tidy = (value) => Math.round(value * 100) / 100;

/**
 * Characters that XML forbids even as references (most control characters, lone surrogates) become U+FFFD.
 *
 * @param {string} text
 */
export function escapeXml(text) {
  return text
    .replace(/[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
