/**
 * Scene to SVG text in few bytes, for pictures that are kept in notebooks: the same marks as svg.js writes, their looks as
 * classes, places to a tenth of a px, lines to a px, all lines of one width in one path. Pure.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./types.js").Route} Route
 * @typedef {import("./theme.js").Palette} Palette
 * @typedef {import("./marks.js").Mark} Mark
 *
 * @typedef {Object} Look
 * @property {(box: Box) => string | null} [colourOf]
 * @property {(box: Box) => boolean} [isHit]
 * @property {(box: Box) => boolean} [isSelected]
 * @property {boolean} [isNamed] each box is a group that says its name, as in svg.js
 */
import { arrowPath, boxMarks, FONTS, labelMark, PLAIN_LOOK, routeWidth } from "./marks.js";
import { buildSpatial } from "./spatial.js";
import { escapeXml, fittingRuns, MARGIN } from "./svg.js";
import { levelFill } from "./theme.js";

/**
 * @param {Scene} scene
 * @param {Graph} graph
 * @param {Palette} palette
 * @param {Look} [look]
 * @returns {string} a whole SVG document
 */
export function compactSvg(scene, graph, palette, look = {}) {
  const classes = new Classes();
  const draw = (/** @type {Box} */ box) => {
    const marks = boxMarks(box, graph, palette, {
      ...PLAIN_LOOK,
      colour: look.colourOf?.(box) ?? null,
      isHit: look.isHit?.(box) ?? false,
      isSelected: look.isSelected?.(box) ?? false,
    });
    const drawn = marks.map((mark) => written(mark, classes)).join("");
    return look.isNamed ? `<g data-name='${quotable(box.item.name)}'>${drawn}</g>` : drawn;
  };
  const panels = scene.boxes.filter((box) => box.item.isOpen).map(draw);
  const leaves = scene.boxes.filter((box) => !box.item.isOpen).map(draw);
  const body = [...panels, ...lines(scene, palette, classes), ...leaves, ...labels(scene, palette, classes)].join("");
  const width = Math.ceil(scene.width + 2 * MARGIN);
  const height = Math.ceil(scene.height + 2 * MARGIN);
  const title = quotable(graph.title);
  return (
    `<svg xmlns='http://www.w3.org/2000/svg' width='${width}' height='${height}'` +
    ` viewBox='${-MARGIN} ${-MARGIN} ${width} ${height}' role='img' aria-label='${title}'` +
    ` stroke-linecap='round' stroke-linejoin='round'><title>${title}</title>` +
    `<style>text{white-space:pre;font-family:${family("name")}}.${MONO}{font-family:${family("label")}}` +
    `${classes.css()}</style>` +
    `<path fill='${palette.background}' d='M${-MARGIN} ${-MARGIN}h${width}v${height}h${-width}z'/>${body}</svg>`
  );
}

/** Class of text in the second of the two families; no look has a name in capitals. */
const MONO = "M";

/** @param {import("./marks.js").FontName} font */
const family = (font) => FONTS[font].family.replaceAll('"', "'").replaceAll(", ", ",");

/** Short names for looks, each once. */
class Classes {
  /** @type {Map<string, string>} */
  #names = new Map();

  /**
   * @param {string} look declarations of CSS
   * @param {string} [more] another class
   * @returns {string} attribute
   */
  of(look, more = "") {
    if (look === "") return more === "" ? "" : ` class='${more}'`;
    const name = this.#names.get(look) ?? nameOf(this.#names.size);
    this.#names.set(look, name);
    return ` class='${more === "" ? name : `${name} ${more}`}'`;
  }

  css() {
    return [...this.#names].map(([look, name]) => `.${name}{${look}}`).join("");
  }
}

/** @param {number} place @returns {string} a, b, …, z, aa, ab, … */
const nameOf = (place) =>
  (place >= 26 ? nameOf(Math.floor(place / 26) - 1) : "") + String.fromCharCode(97 + (place % 26));

/** @type {(mark: Mark, classes: Classes) => string} */
function written(mark, classes) {
  if (mark.kind === "text") return writtenText(mark, classes);
  const paint = classes.of(
    `fill:${mark.fill ?? "none"}` +
      (mark.stroke ? `;stroke:${mark.stroke};stroke-width:${tenth(mark.lineWidth ?? 1)}` : "") +
      (mark.dash ? `;stroke-dasharray:${mark.dash.join(" ")}` : ""),
  );
  if (mark.kind === "path") return `<path${paint} d='${tenths(mark.d)}'/>`;
  const { x, y, width, height, radius } = mark;
  const [w, h, r] = [width, height, radius].map((size) => tenth(Math.max(size, 0)));
  return `<rect${paint} x='${tenth(x)}' y='${tenth(y)}' width='${w}' height='${h}'${r ? ` rx='${r}'` : ""}/>`;
}

/** @type {(mark: import("./marks.js").TextMark, classes: Classes) => string} */
function writtenText(mark, classes) {
  const isMono = family(mark.runs[0]?.font ?? "name") === family("label");
  const halo = mark.halo ? `paint-order:stroke;stroke:${mark.halo};stroke-width:4` : "";
  const anchor = mark.anchor === "start" ? "" : `text-anchor:${mark.anchor}`;
  const runs = fittingRuns(mark).map(({ text, font, fill }) => {
    const { size, weight } = FONTS[font];
    const bold = weight === 400 ? "" : `;font-weight:${weight}`;
    return { text: quotable(text), look: `font-size:${size}px${bold};fill:${fill}` };
  });
  const [only, ...more] = runs;
  const place = `x='${tenth(mark.x)}' y='${tenth(mark.y)}'`;
  const isOne = only !== undefined && more.length === 0;
  const look = [anchor, halo, isOne ? only.look : ""].filter((part) => part !== "").join(";");
  const whole = classes.of(look, isMono ? MONO : "");
  if (isOne) return `<text${whole} ${place}>${only.text}</text>`;
  const spans = runs.map((run) => `<tspan${classes.of(run.look)}>${run.text}</tspan>`).join("");
  return `<text${whole} ${place}>${spans}</text>`;
}

/** @type {(scene: Scene, palette: Palette, classes: Classes) => string[]} all lines of one width as one path, all arrows as one */
function lines({ routes }, palette, classes) {
  /** @type {Map<number, string>} */
  const byWidth = new Map();
  for (const route of routes) {
    const width = Math.round(routeWidth(route) * 4) / 4;
    byWidth.set(width, (byWidth.get(width) ?? "") + linePath(route));
  }
  const paths = [...byWidth].map(
    ([width, d]) => `<path${classes.of(`fill:none;stroke:${palette.edge};stroke-width:${width}`)} d='${d}'/>`,
  );
  if (routes.length === 0) return paths;
  const arrows = routes.map((route) => tenths(arrowPath(route))).join("");
  return [...paths, `<path fill='${palette.edge}' d='${arrows}'/>`];
}

/** @param {Route} route @returns {string} relative, in whole px */
function linePath({ points, curve }) {
  const p = points.map(Math.round);
  let d = `M${p[0]} ${p[1]}${curve === "bezier" ? "c" : "l"}`;
  const step = curve === "bezier" ? 6 : 2;
  for (let at = 2; at + step <= p.length; at += step) {
    const moves = p.slice(at, at + step).map((value, place) => value - p[at - 2 + (place % 2)]);
    d +=
      (at === 2 ? "" : separated(moves[0])) + moves.map((value, place) => (place ? separated(value) : value)).join("");
  }
  return d;
}

/** @param {number} value @returns {string} a minus sign parts numbers as a blank does */
const separated = (value) => (value < 0 ? String(value) : ` ${value}`);

/** @type {(scene: Scene, palette: Palette, classes: Classes) => string[]} */
function labels(scene, palette, classes) {
  const { ground } = buildSpatial(scene);
  return scene.routes.map((route, index) => {
    const mark = labelMark(route, palette, levelFill(palette, ground[index] ?? -1));
    return mark ? written(mark, classes) : "";
  });
}

/** Attributes are in single quotes, which cost nothing inside HTML and JSON. @param {string} text */
const quotable = (text) => escapeXml(text).replaceAll("'", "&#39;");

/** @param {number} value */
const tenth = (value) => Math.round(value * 10) / 10;

/** @param {string} text @returns {string} the same, its numbers to a tenth */
const tenths = (text) => text.replace(/-?\d+\.\d+/g, (number) => String(tenth(Number(number))));
