import assert from "node:assert/strict";
import { test } from "node:test";
import { boxAt, buildSpatial, routeAt, visitBoxes, visitRoutes } from "../src/spatial.js";
import { allOpen } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { graphOf, indexOf, sceneOf } from "./scenes.js";

const graph = graphOf(gpt2Document(3));
const scene = sceneOf(graph, allOpen(graph));
const spatial = buildSpatial(scene);
const everywhere = { left: -1e6, top: -1e6, right: 1e6, bottom: 1e6 };

test("each box comes after the one around it, and all that is inside follows it", () => {
  const position = new Map([...spatial.order].map((index, at) => [index, at]));
  assert.equal(position.size, scene.boxes.length);
  scene.boxes.forEach((box, index) => {
    if (box.parent < 0) return;
    const at = /** @type {number} */ (position.get(index));
    const parentAt = /** @type {number} */ (position.get(box.parent));
    assert.ok(parentAt < at && at < spatial.after[parentAt]);
  });
});

test("an area gives the boxes that touch it and no others", () => {
  const target = scene.boxes[indexOf(scene, "transformer.h.1.mlp.act")];
  const area = { left: target.x, top: target.y, right: target.x + target.width, bottom: target.y + target.height };
  /** @type {string[]} */
  const found = [];
  visitBoxes(spatial, area, 0, (index) => found.push(scene.boxes[index].item.name));
  assert.deepEqual(found.slice(0, 4), [
    "transformer",
    "transformer.h.1",
    "transformer.h.1.mlp",
    "transformer.h.1.mlp.act",
  ]);
  assert.ok(!found.includes("transformer.h.0") && !found.includes("transformer.h.2"));
});

test("what is too small to be seen is visited as a whole", () => {
  /** @type {[string, boolean][]} */
  const found = [];
  const block = scene.boxes[indexOf(scene, "transformer.h.0.attn")];
  visitBoxes(spatial, everywhere, Math.max(block.width, block.height) + 1, (index, isWhole) =>
    found.push([scene.boxes[index].item.name, isWhole]),
  );
  assert.deepEqual(
    found.find(([name]) => name === "transformer.h.0.attn"),
    ["transformer.h.0.attn", true],
  );
  assert.ok(!found.some(([name]) => name.startsWith("transformer.h.0.attn.")));
});

test("routes outside an area or shorter than what can be seen are left out", () => {
  const count = (/** @type {any} */ area, /** @type {number} */ smallest) => {
    let found = 0;
    visitRoutes(spatial, area, smallest, () => (found += 1));
    return found;
  };
  assert.equal(count(everywhere, 0), scene.routes.length);
  assert.equal(count({ left: -500, top: -500, right: -400, bottom: -400 }, 0), 0);
  assert.equal(count(everywhere, 1e6), 0);
});

test("the innermost box is under a point", () => {
  const inner = scene.boxes[indexOf(scene, "transformer.h.2.ln_1.layer_norm")];
  assert.equal(boxAt(spatial, inner.x + 5, inner.y + 5), indexOf(scene, "transformer.h.2.ln_1.layer_norm"));
  assert.equal(boxAt(spatial, -50, -50), -1);
  const around = scene.boxes[indexOf(scene, "transformer.h.2")];
  assert.equal(boxAt(spatial, around.x + 2, around.y + 12), indexOf(scene, "transformer.h.2"));
});

test("the route under the pointer is found along its curve, not in its bounding box", () => {
  const route = scene.routes.findIndex((one) => one.curve === "bezier" && one.points.length >= 8);
  const { points } = scene.routes[route];
  const middle = [0, 1].map(
    (axis) => (points[axis] + 3 * points[2 + axis] + 3 * points[4 + axis] + points[6 + axis]) / 8,
  );
  assert.equal(routeAt(spatial, middle[0], middle[1], 4), route);
  assert.equal(routeAt(spatial, -300, -300, 4), -1);
  const line = {
    ...scene,
    boxes: scene.boxes.slice(0, 2),
    routes: [{ ...scene.routes[0], curve: /** @type {"line"} */ ("line"), points: [0, 0, 0, 100, 100, 100] }],
  };
  assert.equal(routeAt(buildSpatial(line), 3, 50, 4), 0);
  assert.equal(routeAt(buildSpatial(line), 50, 50, 4), -1);
});
