import assert from "node:assert/strict";
import { test } from "node:test";
import { between } from "../src/motion.js";
import { levelsState } from "../src/states.js";
import { closedState, openState } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { graphOf, indexOf, sceneOf } from "./scenes.js";

const graph = graphOf(gpt2Document(2));
const state = levelsState(graph, 1, closedState().hide);
const small = sceneOf(graph, state);
const large = sceneOf(graph, openState(graph, state, small.boxes[indexOf(small, "transformer.h.0")].item));

test("at the end everything is in its place", () => {
  const { scene, boxAlpha, routeAlpha } = between(small, large)(1);
  assert.deepEqual(scene.boxes.slice(0, large.boxes.length), large.boxes);
  assert.deepEqual(
    scene.routes.map((route) => route.points),
    large.routes.map((route) => route.points),
  );
  assert.ok(boxAlpha.slice(0, large.boxes.length).every((alpha) => alpha === 1));
  assert.ok(routeAlpha.every((alpha) => alpha === 1));
});

test("at the start what stays is where it was, and what is new can't be seen", () => {
  const { scene, boxAlpha } = between(small, large)(0);
  const before = small.boxes[indexOf(small, "transformer.wte")];
  const index = indexOf(scene, "transformer.wte");
  assert.deepEqual([scene.boxes[index].x, scene.boxes[index].y], [before.x, before.y]);
  assert.equal(boxAlpha[index], 1);
  assert.equal(boxAlpha[indexOf(scene, "transformer.h.0.ln_1")], 0);
});

test("halfway a box is halfway", () => {
  const { scene } = between(small, large)(0.5);
  const [a, b, now] = [small, large, scene].map((one) => one.boxes[indexOf(one, "lm_head")]);
  assert.equal(now.y, (a.y + b.y) / 2);
});

test("what is gone fades inside the box that it went into", () => {
  const { scene, boxAlpha } = between(large, small)(0.2);
  const ghost = indexOf(scene, "transformer.h.0.ln_1");
  assert.ok(ghost >= small.boxes.length);
  assert.ok(boxAlpha[ghost] > 0 && boxAlpha[ghost] < 1);
  assert.equal(scene.boxes[scene.boxes[ghost].parent].item.name, "transformer.h.0");
  assert.equal(between(large, small)(1).boxAlpha[ghost], 0);
});

test("a new edge moves along with the boxes at its ends", () => {
  const name = "transformer.h.0.ln_1";
  const route = large.routes.findIndex(({ head }) => large.boxes[head].item.name === name);
  const gapAt = (/** @type {number} */ t) => {
    const { scene } = between(small, large)(t);
    const { points } = scene.routes[route];
    const box = scene.boxes[indexOf(scene, name)];
    return [points[points.length - 2] - box.x - box.width / 2, points[points.length - 1] - box.y];
  };
  const end = gapAt(1);
  for (const t of [0, 0.4]) gapAt(t).forEach((gap, axis) => assert.ok(Math.abs(gap - end[axis]) < 0.01));
});
