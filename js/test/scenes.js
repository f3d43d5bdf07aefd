/** Graphs and scenes for tests of what draws them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { layoutSync, simpleEngine } from "../src/layout.js";
import { decode } from "../src/schema.js";
import { initialState, visibleGraph } from "../src/visible.js";

/**
 * @param {any} document
 * @returns {import("../src/types.js").Graph}
 */
export function graphOf(document) {
  const decoded = decode(document);
  assert.equal(decoded.status, "success");
  return /** @type {any} */ (decoded).graph;
}

/** @param {string} name of a file in tests/documents @returns {any} */
export function documentNamed(name) {
  return JSON.parse(readFileSync(new URL(`../../tests/documents/${name}.json`, import.meta.url), "utf8"));
}

/** @type {(graph: import("../src/types.js").Graph, state?: import("../src/visible.js").State) => import("../src/types.js").Scene} */
export function sceneOf(graph, state = initialState(graph)) {
  return layoutSync(graph, visibleGraph(graph, state), simpleEngine);
}

/** @type {(scene: import("../src/types.js").Scene, name: string) => number} */
export function indexOf(scene, name) {
  const index = scene.boxes.findIndex((box) => box.item.name === name);
  assert.ok(index >= 0, `${name} is not in the scene`);
  return index;
}
