/**
 * Pictures that were looked at and found good. A change of layout or look shows as a diff of these files; after looking at
 * the new ones in a browser, write them with
 *
 *     UPDATE_REFERENCES=1 node --test js/test/references.test.js
 */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { createVizEngine } from "../src/engine/viz.js";
import { layoutSync } from "../src/layout.js";
import { levelsState, startState } from "../src/states.js";
import { sceneToSvg } from "../src/svg.js";
import { PALETTES } from "../src/theme.js";
import { allOpen, closedState, visibleGraph } from "../src/visible.js";
import { measureQuality } from "./quality.js";
import { documentNamed, graphOf } from "./scenes.js";

const FOLDER = new URL("../../tests/references/", import.meta.url);
const { hide } = closedState();

/** Stand-ins for well-known models, made by tests/make_references.py. */
const MODELS = ["resnet18", "resnet50", "vit", "gpt2", "fasterrcnn", "unet", "lstm"];
/** @type {[depth: number | "all", theme: import("../src/theme.js").ThemeName][]} */
const LOOKS = [
  [1, "light"],
  [2, "light"],
  ["all", "light"],
  [1, "dark"],
  [2, "dark"],
  ["all", "dark"],
];

/** @type {[document: string, depth: number | "start" | "all", theme: import("../src/theme.js").ThemeName][]} */
const PICTURES = [
  ["mlp", "all", "light"],
  ["residual", "start", "light"],
  ["residual", "all", "dark"],
  ["decoder", 0, "light"],
  ["decoder", 1, "light"],
  ["decoder", 2, "dark"],
  ["crash", "start", "light"],
  ["crash", "start", "dark"],
  ["reused", "start", "light"],
  ["opaque", "start", "light"],
  ["hostile", 0, "light"],
];

/** @type {(graph: import("../src/types.js").Graph, depth: number | "start" | "all") => import("../src/visible.js").State} */
function stateAt(graph, depth) {
  if (depth === "all") return allOpen(graph, hide);
  if (depth !== "start") return levelsState(graph, depth, hide);
  return startState(graph, {
    depth: null,
    opened: null,
    commands: [],
    selected: [],
    showConstants: null,
    foldRepeats: null,
  });
}

/** @param {string} svg */
const withoutColours = (svg) => svg.replace(/#[0-9a-f]{3,8}\b|rgba?\([^)]*\)/gi, "");

/** @param {string} name @returns {Promise<any>} */
async function modelDocument(name) {
  const packed = await readFile(new URL(`documents/${name}.json.gz`, FOLDER));
  return JSON.parse(gunzipSync(packed).toString());
}

for (const [name, depth, theme] of PICTURES) compare(name, depth, theme, async () => documentNamed(name));
for (const name of MODELS) {
  for (const [depth, theme] of LOOKS) compare(name, depth, theme, () => modelDocument(name));
}

/** @type {(name: string, depth: number | "start" | "all", theme: import("../src/theme.js").ThemeName, read: () => Promise<any>) => void} */
function compare(name, depth, theme, read) {
  const file = `${name}_${depth}_${theme}.svg`;
  test(`${file} looks as it was reviewed`, async () => {
    const graph = graphOf(await read());
    const engine = await createVizEngine(null);
    const scene = layoutSync(graph, visibleGraph(graph, stateAt(graph, depth)), engine);
    const { edgesThroughBoxes, boxOverlaps, labelOverlaps } = measureQuality(scene);
    assert.deepEqual([edgesThroughBoxes, boxOverlaps, labelOverlaps], [0, 0, 0]);
    const svg = sceneToSvg(scene, graph, PALETTES[theme]);
    // The themes differ in their colours alone.
    for (const palette of Object.values(PALETTES)) {
      assert.equal(withoutColours(sceneToSvg(scene, graph, palette)), withoutColours(svg));
    }
    const path = new URL(file, FOLDER);
    if (process.env.UPDATE_REFERENCES) {
      await mkdir(FOLDER, { recursive: true });
      await writeFile(path, svg);
    }
    assert.equal(svg, await readFile(path, "utf8"));
  });
}
