/**
 * Entry for an embedded V8 without a browser: a document in, SVG text out. The bundle puts these functions on the global
 * `torchatlas`.
 *
 *     await torchatlas.start(wasm)              // once; base64 of the bytes of Graphviz. Without it, the simple engine
 *     torchatlas.renderSvg(document, options)   // both as JSON text; gives SVG text, throws on a document it can't read
 *     torchatlas.renderSvg(document, options, "compact")   // the same picture in fewer bytes: see compact.js
 *
 * `options` are those of options.js; a `depth` of "all" opens everything.
 */
import { createVizEngine } from "./engine/viz.js";
import { layoutSync, simpleEngine } from "./layout.js";
import { colouring } from "./colours.js";
import { compactSvg } from "./compact.js";
import { readOptions } from "./options.js";
import { decode } from "./schema.js";
import { standInFinder, startState } from "./states.js";
import { sceneToSvg } from "./svg.js";
import { PALETTES } from "./theme.js";
import { allOpen, visibleGraph } from "./visible.js";

let engine = simpleEngine;

/**
 * @param {string} wasm base64 of the bytes of Graphviz
 * @returns {Promise<void>}
 */
export async function start(wasm) {
  globalThis.TextDecoder ??= /** @type {any} */ (Utf8Decoder);
  engine = await createVizEngine(fromBase64(wasm));
}

/**
 * @param {string} documentText
 * @param {string} optionsText
 * @param {"plain" | "compact"} [style]
 * @returns {string}
 */
export function renderSvg(documentText, optionsText, style = "plain") {
  const given = JSON.parse(optionsText || "{}");
  const options = readOptions(given);
  const decoded = decode(JSON.parse(documentText));
  if (decoded.status === "failure") throw new Error(decoded.errors.join("; "));
  const { graph } = decoded;
  const first = startState(graph, options);
  const state = given.depth === "all" ? allOpen(graph, first.hide) : first;
  const visible = visibleGraph(graph, state);
  const scene = layoutSync(graph, visible, engine);
  const palette = PALETTES[options.theme === "dark" ? "dark" : "light"];
  const standIn = standInFinder(graph, visible.items);
  const hits = new Set(options.highlighted.map((name) => visible.items[standIn(name)]));
  const { colourOf } = colouring(graph, options.colourBy, palette, options.numbers, visible.items);
  const write = style === "compact" ? compactSvg : sceneToSvg;
  return write(scene, graph, palette, {
    colourOf: (box) => colourOf(box.item),
    isHit: (box) => hits.has(box.item),
  });
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Embedded engines have no `atob`. @param {string} text @returns {Uint8Array} */
function fromBase64(text) {
  const codes = new Uint8Array(128);
  for (let i = 0; i < ALPHABET.length; i += 1) codes[ALPHABET.charCodeAt(i)] = i;
  const body = text.replace(/[^A-Za-z0-9+/]/g, "");
  const bytes = new Uint8Array(Math.floor((body.length * 3) / 4));
  for (let i = 0, at = 0; i < body.length; i += 4) {
    const code = (/** @type {number} */ shift) => codes[body.charCodeAt(i + shift)] ?? 0;
    const word = (code(0) << 18) | (code(1) << 12) | (code(2) << 6) | code(3);
    for (const shift of [16, 8, 0]) if (at < bytes.length) bytes[at++] = (word >> shift) & 255;
  }
  return bytes;
}

/** What Graphviz's loader needs of `TextDecoder`, which embedded engines lack. */
export class Utf8Decoder {
  /**
   * @param {Uint8Array} bytes UTF-8
   * @returns {string} U+FFFD for what is none
   */
  decode(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length;) {
      const first = bytes[at];
      const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
      const rest = Array.from(bytes.subarray(at + 1, at + length));
      const isWhole =
        length > 0 && first < 0xf5 && rest.length === length - 1 && rest.every((byte) => (byte & 0xc0) === 0x80);
      const code = isWhole
        ? rest.reduce((value, byte) => value * 64 + (byte & 63), length === 1 ? first : first & (0x7f >> length))
        : 0xfffd;
      text += String.fromCodePoint(Math.min(code, 0x10ffff));
      at += isWhole ? length : 1;
    }
    return text;
  }
}
