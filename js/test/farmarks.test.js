import assert from "node:assert/strict";
import { test } from "node:test";
import { farMarks, isSummary, summaryOf } from "../src/farmarks.js";
import { landmarks } from "../src/landmarks.js";
import { PLAIN_LOOK } from "../src/marks.js";
import { buildSpatial } from "../src/spatial.js";
import { levelsState } from "../src/states.js";
import { mix, PALETTES } from "../src/theme.js";
import { closedState } from "../src/visible.js";
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

/** Open modules in a column: an outer one of the given width with six inside. @param {number} width */
function column(width) {
  const box = (
    /** @type {string} */ title,
    /** @type {number} */ depth,
    /** @type {number} */ y,
    /** @type {number} */ height,
  ) => ({
    item: { name: title, kind: "call", id: 0, parent: null, isOpen: true, isOpenable: false, members: [], depth },
    ...{
      parent: depth - 1,
      x: depth * 10,
      y,
      width: width - depth * 20,
      height,
      headerHeight: 30,
      title,
      subtitle: "Block",
      detail: "",
      badge: "",
    },
  });
  const inner = [0, 1, 2, 3, 4, 5].map((number) => box(`h.${number}`, 1, 100 + number * 4000, 3900));
  return /** @type {import("../src/types.js").Box[]} */ ([box("body", 0, 0, 25000), ...inner]);
}

/** @param {number} width */
function spatialOf(width) {
  return buildSpatial({ ...scene, width, boxes: column(width), routes: [] });
}

test("landmarks stand beside a strip, inside a wide picture, and never over one another", () => {
  const panels = [0, 1, 2, 3, 4, 5, 6];
  const transform = { x: 300, y: 60, k: 0.02 };
  const beside = landmarks(spatialOf(1000), panels, transform);
  assert.deepEqual(
    beside.map(({ index }) => index),
    [0, 2, 3, 4, 5, 6],
    "h.0 begins where the outer one does",
  );
  assert.ok(beside.every(({ isBeside, x }) => isBeside && x === 300 + 1000 * 0.02 + 8));
  const inside = landmarks(spatialOf(8000), panels, transform);
  assert.ok(inside.length > 4 && inside.every(({ isBeside, x }) => !isBeside && x < 320));
  for (const marks of [beside, inside]) {
    const heights = marks.map(({ y }) => y).sort((a, b) => a - b);
    assert.ok(heights.every((y, at) => at === 0 || y - heights[at - 1] >= 14));
  }
});

test("near by, no landmarks are needed", () => {
  assert.deepEqual(landmarks(spatialOf(1000), [0, 1], { x: 0, y: 0, k: 1 }), []);
});

test("from afar a module with a few operations looks closed; one with modules inside does not", () => {
  const open = sceneOf(graph, levelsState(graph, 3, closedState().hide));
  const spatial = buildSpatial(open);
  const leaf = indexOf(open, "transformer.wte");
  assert.ok(isSummary(spatial, leaf, 0.25));
  assert.ok(!isSummary(spatial, leaf, 0.5), "near enough to read what is in it");
  assert.ok(!isSummary(spatial, leaf, 52 / open.boxes[leaf].height), "large enough to see what is in it");
  assert.ok(!isSummary(spatial, indexOf(open, "transformer"), 0.01));
  const marks = farMarks(summaryOf(open.boxes[leaf]), graph, palette, PLAIN_LOOK, 0.25);
  assert.ok(
    marks.some((mark) => mark.kind === "rect" && mark.fill === mix(palette.card, palette.families.embedding, 0.2)),
  );
  assert.ok(marks.some((mark) => mark.kind === "text" && mark.runs[0].text === "wte"));
});

test("a name that is too long for its module loses its beginning", () => {
  const boxes = column(8000).map((box) => ({
    ...box,
    title: box.title.replace("h.", "encoder_layer_with_a_long_name_"),
  }));
  const spatial = buildSpatial({ ...scene, width: 8000, boxes, routes: [] });
  const texts = landmarks(spatial, [0, 1, 2, 3], { x: 0, y: 0, k: 0.02 }).map(({ text }) => text);
  assert.ok(texts.includes("body"));
  assert.ok(
    texts.some((text) => /^….*_name_1$/.test(text)),
    texts.join(),
  );
});

test("a name that would lie on a child stands above its module", () => {
  const boxes = column(8000);
  const card = { ...boxes[1], item: { ...boxes[1].item, isOpen: false }, y: 60 };
  const spatial = buildSpatial({ ...scene, width: 8000, boxes: [boxes[0], card], routes: [] });
  const [mark] = landmarks(spatial, [0], { x: 0, y: 100, k: 0.02 });
  assert.ok(mark.y < 100);
});

test("in columns no name stands beside the picture", () => {
  const boxes = column(1000);
  const right = { ...boxes[1], x: 520, width: 480 };
  const left = { ...boxes[1], width: 480 };
  const spatial = buildSpatial({ ...scene, width: 1000, boxes: [boxes[0], left, right], routes: [] });
  const marks = landmarks(spatial, [0, 1, 2], { x: 0, y: 0, k: 0.02 });
  assert.deepEqual(
    marks.map(({ index }) => index),
    [0],
  );
});
