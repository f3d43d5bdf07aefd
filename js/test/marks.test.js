import assert from "node:assert/strict";
import { test } from "node:test";
import { arrowPath, boxMarks, handleRect, labelMark, PLAIN_LOOK, routePath, routeWidth } from "../src/marks.js";
import { PALETTES } from "../src/theme.js";
import { gpt2Document } from "./gpt2.js";
import { documentNamed, graphOf, indexOf, sceneOf } from "./scenes.js";

const palette = PALETTES.light;

/** The marks of a kind of node without colours and texts. @param {Partial<import("../src/types.js").GraphNode>} node */
function shapeOf(node) {
  const item = {
    name: "n",
    kind: "node",
    id: 0,
    parent: null,
    isOpen: false,
    isOpenable: false,
    members: [],
    depth: 0,
  };
  const box = {
    item,
    parent: -1,
    x: 0,
    y: 0,
    width: 80,
    height: 26,
    headerHeight: 0,
    title: "n",
    subtitle: "",
    detail: "",
    badge: "",
  };
  const graph = { nodes: [{ id: 0, status: "ok", ...node }], calls: [] };
  const marks = boxMarks(/** @type {any} */ (box), /** @type {any} */ (graph), palette, PLAIN_LOOK);
  return JSON.stringify(marks.map((mark) => ({ ...mark, fill: undefined, stroke: undefined, runs: undefined })));
}

test("kinds of nodes are told apart by their outlines alone", () => {
  const kinds = /** @type {const} */ (["input", "output", "op", "opaque", "parameter", "buffer", "constant"]);
  const shapes = new Set(kinds.map((kind) => shapeOf({ kind, op: kind })));
  assert.equal(shapes.size, kinds.length);
  assert.notEqual(shapeOf({ kind: "op", op: "add" }), shapeOf({ kind: "op", op: "add", status: "failed" }));
});

test("a folded repeat is a stack, an open module a panel with its numbers", () => {
  const graph = graphOf(gpt2Document(12));
  const scene = sceneOf(graph);
  const repeat = scene.boxes.find((box) => box.item.kind === "repeat");
  assert.ok(repeat);
  const rects = boxMarks(repeat, graph, palette, PLAIN_LOOK).filter((mark) => mark.kind === "rect" && mark.width > 60);
  assert.equal(rects.length, 3);
  const open = scene.boxes[indexOf(scene, "transformer")];
  const texts = boxMarks(open, graph, palette, PLAIN_LOOK).flatMap((mark) =>
    mark.kind === "text" ? mark.runs.map((run) => run.text) : [],
  );
  assert.deepEqual(texts, ["transformer", " GPT2Model", "124 M params"]);
});

test("the button is where the arrow is drawn", () => {
  const graph = graphOf(gpt2Document(12));
  const scene = sceneOf(graph);
  for (const box of scene.boxes) {
    const handle = handleRect(box);
    assert.equal(handle !== null, box.item.isOpen || box.item.isOpenable);
    if (handle) assert.deepEqual([handle.x, handle.y], [box.x, box.y]);
  }
});

test("a selected box is outlined, and so is what the search found", () => {
  const graph = graphOf(documentNamed("residual"));
  const box = sceneOf(graph).boxes[0];
  const strokes = (/** @type {any} */ look) =>
    boxMarks(box, graph, palette, { ...PLAIN_LOOK, ...look }).map((mark) => /** @type {any} */ (mark).stroke);
  assert.ok(strokes({ isSelected: true }).includes(palette.selected));
  assert.ok(strokes({ isHit: true }).includes(palette.hit));
  assert.ok(!strokes({}).includes(palette.hit));
});

/** @type {(points: number[], curve: "bezier"|"line", weight?: number) => import("../src/types.js").Route} */
const route = (points, curve, weight = 0) => ({
  link: 0,
  tail: 0,
  head: 1,
  points,
  curve,
  isRail: false,
  weight,
  label: null,
});

test("curves and corners become path data", () => {
  assert.equal(routePath(route([0, 0, 0, 10, 5, 20, 5, 30], "bezier")), "M0 0C0 10 5 20 5 30");
  assert.equal(routePath(route([0, 0, 0, 100], "line")), "M0 0L0 100");
  assert.equal(routePath(route([0, 0, 0, 100, 100, 100], "line")), "M0 0L0 92Q0 100 8 100L100 100");
});

test("the arrow points along the end of the line, its tip on the end", () => {
  assert.equal(arrowPath(route([0, 0, 0, 100], "line")), "M0 100L-3.6 93L3.6 93Z");
  assert.match(arrowPath(route([0, 0, 0, 50, 9, 100, 9, 100], "bezier")), /^M9 100L/);
  assert.match(arrowPath(route([5, 5, 5, 5], "line")), /^M5 5L1.4 -2L8.6 -2Z$/);
});

test("more data, thicker line", () => {
  assert.ok(routeWidth(route([0, 0, 0, 1], "line", 1)) > routeWidth(route([0, 0, 0, 1], "line", 0.1)));
});

test("a label has the colour of the ground around it", () => {
  const labelled = { ...route([0, 0, 0, 1], "line"), label: { text: "1×2", x: 4, y: 6, width: 20, height: 14 } };
  const mark = labelMark(labelled, palette, "#abcdef");
  assert.equal(mark?.halo, "#abcdef");
  assert.equal(mark?.x, 4);
  assert.equal(labelMark(route([0, 0, 0, 1], "line"), palette, "#abcdef"), null);
});
