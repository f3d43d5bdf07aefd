/**
 * Pictures that were looked at and found good. A change of layout or look shows as a diff of these files; after looking at
 * the new ones in a browser, write them with
 *
 *     UPDATE_REFERENCES=1 node --test js/test/references.test.js
 */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { createVizEngine } from "../src/engine/viz.js";
import { layoutSync } from "../src/layout.js";
import { levelsState, startState } from "../src/states.js";
import { sceneToSvg } from "../src/svg.js";
import { PALETTES } from "../src/theme.js";
import { allOpen, closedState, visibleGraph } from "../src/visible.js";
import { documentNamed, graphOf } from "./scenes.js";

const FOLDER = new URL("../../tests/references/", import.meta.url);
const { hide } = closedState();

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

for (const [name, depth, theme] of PICTURES) {
  const file = `${name}_${depth}_${theme}.svg`;
  test(`${file} looks as it was reviewed`, async () => {
    const graph = graphOf(documentNamed(name));
    const engine = await createVizEngine(null);
    const scene = layoutSync(graph, visibleGraph(graph, stateAt(graph, depth)), engine);
    const svg = sceneToSvg(scene, graph, PALETTES[theme]);
    const path = new URL(file, FOLDER);
    if (process.env.UPDATE_REFERENCES) {
      await mkdir(FOLDER, { recursive: true });
      await writeFile(path, svg);
    }
    assert.equal(svg, await readFile(path, "utf8"));
  });
}
