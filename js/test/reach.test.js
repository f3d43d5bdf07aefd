import assert from "node:assert/strict";
import { test } from "node:test";
import { reach } from "../src/reach.js";
import { levelsState, openByName } from "../src/states.js";
import { closedState } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { graphOf, indexOf, sceneOf } from "./scenes.js";

const graph = graphOf(gpt2Document(2));
const scene = sceneOf(graph, openByName(graph, levelsState(graph, 1, closedState().hide), "transformer.h.0"));
const nameOf = (/** @type {number} */ box) => scene.boxes[box].item.name;

/** @type {(routes: Map<number, number>, distance: number) => string[]} */
const at = (routes, distance) =>
  [...routes]
    .filter(([, steps]) => steps === distance)
    .map(([route]) => `${nameOf(scene.routes[route].tail)} > ${nameOf(scene.routes[route].head)}`);

test("distances count the boxes between", () => {
  const { upstream, downstream } = reach(scene, [indexOf(scene, "transformer.wte")]);
  assert.deepEqual(at(upstream, 0), ["input_ids > transformer.wte"]);
  assert.deepEqual(at(upstream, 1), []);
  assert.deepEqual(at(downstream, 0), ["transformer.wte > transformer.add"]);
  assert.ok(at(downstream, 1).includes("transformer.add > transformer.h.0.ln_1"));
});

test("what runs only inside an open module leads neither to it nor away", () => {
  const block = indexOf(scene, "transformer.h.0");
  const { upstream, downstream } = reach(scene, [block]);
  assert.ok(at(upstream, 0).every((route) => route.startsWith("transformer.add > transformer.h.0.")));
  assert.ok(at(downstream, 0).every((route) => route.startsWith("transformer.h.0.add_1 > ")));
  assert.ok(
    !at(upstream, 0)
      .concat(at(downstream, 0))
      .some((route) => route.includes("ln_1 >")),
  );
});

test("nothing selected, nothing reached", () => {
  const { upstream, downstream } = reach(scene, []);
  assert.equal(upstream.size + downstream.size, 0);
});
