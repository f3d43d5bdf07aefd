import assert from "node:assert/strict";
import { test } from "node:test";
import { farMarks } from "../src/farmarks.js";
import { landmarks } from "../src/landmarks.js";
import { PLAIN_LOOK } from "../src/marks.js";
import { levelsState } from "../src/states.js";
import { mix, PALETTES } from "../src/theme.js";
import { allOpen, closedState } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { graphOf, indexOf, sceneOf } from "./scenes.js";

const palette = PALETTES.light;
const graph = graphOf(gpt2Document(12));
const scene = sceneOf(graph, levelsState(graph, 1, closedState().hide));

/** @type {(name: string, k: number) => import("../src/marks.js").TextMark[]} */
const textsOf = (name, k) =>
  farMarks(scene.boxes[indexOf(scene, name)], graph, palette, PLAIN_LOOK, k).flatMap((mark) =>
    mark.kind === "text" ? [mark] : [],
  );

test("from afar a module carries its name only, larger the farther it is", () => {
  const [near] = textsOf("transformer.wte", 0.4);
  const [far] = textsOf("transformer.wte", 0.25);
  assert.deepEqual(
    near.runs.map((run) => run.text),
    ["wte"],
  );
  assert.ok(/** @type {number} */ (far.scale) > /** @type {number} */ (near.scale));
});

test("a name that could not be read is left out", () => {
  assert.deepEqual(textsOf("transformer.add", 0.2), []);
  assert.deepEqual(textsOf("transformer.wte", 0.05), []);
});

test("a module far away shows its colour", () => {
  const marks = farMarks(scene.boxes[indexOf(scene, "transformer.wte")], graph, palette, PLAIN_LOOK, 0.3);
  assert.ok(
    marks.some((mark) => mark.kind === "rect" && mark.fill === mix(palette.card, palette.families.embedding, 0.2)),
  );
});

test("colours mix channel by channel", () => {
  assert.equal(mix("#000000", "#ff8000", 0.5), "#804000");
  assert.equal(mix("#102030", "#ffffff", 0), "#102030");
});

test("landmarks name open modules beside the picture, never over one another", () => {
  const open = sceneOf(graph, allOpen(graph));
  const panels = open.boxes.map((_, index) => index).filter((index) => open.boxes[index].item.isOpen);
  const marks = landmarks(open.boxes, panels, { x: 300, y: 60, k: 0.02 });
  const names = marks.map(({ index }) => open.boxes[index].item.name);
  assert.ok(names.includes("transformer") && names.includes("transformer.h.5"));
  const heights = marks.map(({ y }) => y).sort((a, b) => a - b);
  assert.ok(heights.every((y, at) => at === 0 || y - heights[at - 1] >= 14));
  assert.deepEqual(landmarks(open.boxes, panels, { x: 0, y: 0, k: 1 }), []);
});
