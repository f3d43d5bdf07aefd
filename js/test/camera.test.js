import assert from "node:assert/strict";
import { test } from "node:test";
import {
  anchorFinder,
  centredView,
  closeView,
  firstView,
  isReadable,
  readingView,
  uncoveredView,
  wholeView,
} from "../src/camera.js";
import { levelsState, openByName } from "../src/states.js";
import { closedState } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { graphOf, indexOf, sceneOf } from "./scenes.js";

const graph = graphOf(gpt2Document(12));
const closed = sceneOf(graph, levelsState(graph, 0, closedState().hide));
const small = levelsState(graph, 1, closedState().hide);
const scene = sceneOf(graph, openByName(graph, small, "transformer.h.0"));
const room = { left: 16, top: 60, width: 1000, height: 600 };

/** Where a box is on the stage. @type {(box: import("../src/types.js").Box, view: import("../src/interact.js").Transform) => {left: number, top: number, right: number, bottom: number}} */
const onStage = (box, { x, y, k }) => ({
  ...{ left: box.x * k + x, top: box.y * k + y },
  ...{ right: (box.x + box.width) * k + x, bottom: (box.y + box.height) * k + y },
});

test("what fits is shown whole, in the middle of the room", () => {
  const view = firstView(closed, room, -1);
  assert.deepEqual(view, wholeView(closed, room));
  assert.ok(Math.abs(view.x + (closed.width / 2) * view.k - 516) < 0.01);
});

test("what would be too small to read starts at its beginning", () => {
  const view = firstView(scene, room, -1);
  assert.ok(isReadable(view.k) && !isReadable(wholeView(scene, room).k * 0.9));
  const input = onStage(scene.boxes[indexOf(scene, "input_ids")], view);
  assert.ok(input.top >= 60 && input.top < 140 && input.left > 16 && input.right < 1016);
});

test("a first view can be about a box, and leaves no room empty for that", () => {
  const inside = indexOf(scene, "transformer.h.0");
  const view = firstView(scene, room, inside);
  const title = onStage(scene.boxes[inside], view);
  assert.ok(title.top >= 60 && title.top < 660);
  const last = firstView(scene, room, indexOf(scene, "lm_head"));
  assert.ok(isReadable(last.k));
  const place = onStage(scene.boxes[indexOf(scene, "lm_head")], last);
  assert.ok(place.top > 360 && place.bottom <= 660, "the end of the picture lies at the end of the room");
  assert.ok(Math.abs(scene.height * last.k + last.y - 660) < 0.01);
});

test("a scene wider than the room shows its start, not its middle", () => {
  const wide = {
    ...scene,
    width: 5000,
    height: 3000,
    boxes: [
      { ...scene.boxes[0], x: 100, y: 0 },
      { ...scene.boxes[1], x: 0, y: 80, width: 5000 },
    ],
  };
  const view = firstView(wide, room, -1);
  assert.equal(view.x, 16);
});

test("a box under a panel moves only as far as needed", () => {
  const box = scene.boxes[indexOf(scene, "transformer.wte")];
  const hidden = { k: 1, x: 900 - box.x, y: 300 - box.y };
  const moved = uncoveredView(box, room, hidden);
  assert.equal(onStage(box, moved).right, 1016 - 12);
  assert.equal(moved.y, hidden.y);
  assert.deepEqual(uncoveredView(box, room, moved), moved);
});

test("views of one box show all of it", () => {
  const box = scene.boxes[indexOf(scene, "transformer.h.0.mlp")];
  const now = { k: 0.1, x: 0, y: 0 };
  for (const view of [closeView(box, room), readingView(box, room), centredView(box, room, now)]) {
    const place = onStage(box, view);
    assert.ok(place.left >= 16 && place.top >= 60 && place.right <= 1016 && place.bottom <= 660);
    assert.ok(isReadable(view.k));
  }
});

test("of a box higher than the room the title is shown", () => {
  const box = { ...scene.boxes[0], height: 9000 };
  assert.equal(onStage(box, centredView(box, room, { k: 1, x: 0, y: 0 })).top, 70);
});

test("the named box is the anchor, else the one nearest to the middle", () => {
  const before = sceneOf(graph, small);
  const corner = (/** @type {import("../src/types.js").Scene} */ of, /** @type {string} */ name) => {
    const { x, y } = of.boxes[indexOf(of, name)];
    return { x, y };
  };
  const named = anchorFinder(before, scene, "transformer.h.0", { x: 0, y: 0 });
  assert.deepEqual([named(0), named(1)], [corner(before, "transformer.h.0"), corner(scene, "transformer.h.0")]);
  const head = before.boxes[indexOf(before, "lm_head")];
  const nearest = anchorFinder(before, scene, null, { x: head.x + head.width / 2, y: head.y + 17 });
  assert.deepEqual(nearest(1), corner(scene, "lm_head"));
});
