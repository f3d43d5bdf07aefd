/**
 * Elements in one expression. Text goes in as text nodes only, so nothing that a model is called can become markup.
 *
 * @typedef {Record<string, string | number | boolean | null | undefined>} Attributes
 */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Document} document
 * @param {Tag} tag
 * @param {Attributes} attributes true writes an empty attribute; false, null and undefined none
 * @param {(Node | string | null)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(document, tag, attributes = {}, children = []) {
  const made = document.createElement(tag);
  setAttributes(made, attributes);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/**
 * @param {Document} document
 * @param {string} text code in it stands between backticks
 * @returns {(HTMLElement | string)[]}
 */
export const withCode = (document, text) =>
  text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 0 ? part : element(document, "code", {}, [part])));

/**
 * A drawing of 16 × 16 from path data, in the colour of the text around it.
 *
 * @param {Document} document
 * @param {string} d
 * @returns {SVGSVGElement}
 */
export function icon(document, d) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  setAttributes(drawing, { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true", class: "icon" });
  const path = document.createElementNS(space, "path");
  setAttributes(path, {
    d,
    fill: "none",
    stroke: "currentColor",
    "stroke-width": 1.6,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  });
  drawing.append(path);
  return drawing;
}

/**
 * @param {Element} target
 * @param {Attributes} attributes
 */
function setAttributes(target, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    target.setAttribute(name, value === true ? "" : String(value));
  }
}
