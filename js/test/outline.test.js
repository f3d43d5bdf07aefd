import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { createOutline, describeBox, describeRoute, outlineOrder } from "../src/outline.js";
import { levelsState } from "../src/states.js";
import { closedState } from "../src/visible.js";
import { gpt2Document } from "./gpt2.js";
import { documentNamed, graphOf, indexOf, sceneOf } from "./scenes.js";

const graph = graphOf(gpt2Document(12));
const scene = sceneOf(graph, levelsState(graph, 1, closedState().hide));

/** An outline in a shadow root, as in the view, and what it told. */
function open() {
  const { window } = new JSDOM("<body><div></div>");
  const { document } = window;
  /** @type {any[]} */
  const told = [];
  const outline = createOutline(document, new window.AbortController().signal, graph, {
    onSelect: (name) => told.push(["select", name]),
    onToggle: (name, isOpen) => told.push(["toggle", name, isOpen]),
    onClose: () => told.push(["close"]),
  });
  const root = /** @type {HTMLElement} */ (document.querySelector("div")).attachShadow({ mode: "open" });
  root.append(outline.box);
  outline.draw(scene, new Set(["transformer.wte"]));
  const rows = () => /** @type {HTMLElement[]} */ ([...root.querySelectorAll('[role="treeitem"]')]);
  const rowOf = (/** @type {string} */ name) =>
    /** @type {HTMLElement} */ (rows().find((row) => row.dataset.name === name));
  const press = (/** @type {HTMLElement} */ row, /** @type {string} */ key) =>
    row.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  return { window, root, outline, told, rows, rowOf, press };
}

test("rows mirror what is open, where it lies and what is selected", () => {
  const { rows, rowOf } = open();
  assert.equal(rows().length, scene.boxes.length);
  const attributes = (/** @type {string} */ name) =>
    ["aria-level", "aria-expanded", "aria-selected"].map((key) => rowOf(name).getAttribute(key));
  assert.deepEqual(attributes("transformer"), ["1", "true", "false"]);
  assert.deepEqual(attributes("transformer.wte"), ["2", "false", "true"]);
  assert.deepEqual(attributes("input_ids"), ["1", null, "false"]);
});

test("one row takes the focus, the arrows move it", () => {
  const { root, outline, rows, press } = open();
  assert.deepEqual(
    rows()
      .map((row) => row.tabIndex)
      .filter((index) => index === 0),
    [0],
  );
  outline.show(true);
  assert.equal(root.activeElement, rows()[0]);
  press(rows()[0], "ArrowDown");
  assert.equal(root.activeElement, rows()[1]);
  press(rows()[1], "End");
  assert.equal(root.activeElement, rows().at(-1));
});

test("left and right close, open and go in and out", () => {
  const { root, told, rowOf, press } = open();
  press(rowOf("transformer.wte"), "ArrowRight");
  press(rowOf("transformer"), "ArrowLeft");
  assert.deepEqual(told, [
    ["toggle", "transformer.wte", true],
    ["toggle", "transformer", false],
  ]);
  press(rowOf("transformer.wte"), "ArrowLeft");
  assert.equal(root.activeElement, rowOf("transformer"));
});

test("Enter and a click select, a click on the arrow opens", () => {
  const { window, told, rowOf, press } = open();
  press(rowOf("lm_head"), "Enter");
  rowOf("lm_head").click();
  rowOf("lm_head")
    .querySelector(".twist")
    ?.dispatchEvent(new window.MouseEvent("click", { bubbles: true }));
  assert.deepEqual(told, [
    ["select", "lm_head"],
    ["select", "lm_head"],
    ["toggle", "lm_head", false],
  ]);
});

test("the focus survives a new drawing", () => {
  const { root, outline, rowOf, press } = open();
  press(rowOf("transformer"), "ArrowDown");
  const name = /** @type {HTMLElement} */ (root.activeElement).dataset.name;
  outline.draw(scene, new Set());
  assert.equal(/** @type {HTMLElement} */ (root.activeElement).dataset.name, name);
});

test("boxes are described in words", () => {
  const words = (/** @type {string} */ name) => describeBox(graph, scene.boxes[indexOf(scene, name)]);
  assert.equal(words("input_ids"), "input_ids (input), gives 1×128 i64");
  assert.equal(words("transformer.wte"), "wte Embedding, gives 1×128×768 f32");
  assert.match(words("transformer.h.0"), /^h\.0 … h\.11 GPT2Block, 12 equal blocks/);
  const crashed = graphOf(documentNamed("crash"));
  const crash = sceneOf(crashed);
  assert.match(describeBox(crashed, crash.boxes[indexOf(crash, "body")]), /failed/);
});

test("what is inside a box comes right after it", () => {
  const order = outlineOrder(scene).map((box) => box.item.name);
  assert.deepEqual([...order].sort(), scene.boxes.map((box) => box.item.name).sort());
  assert.ok(order.indexOf("lm_head") > order.indexOf("transformer.ln_f"));
});

test("a route is described by its tensor and its ends", () => {
  const route = scene.routes.find(({ tail }) => scene.boxes[tail].item.name === "input_ids");
  assert.ok(route);
  assert.equal(describeRoute(graph, scene, route), "1×128 int64 · 1.02 kB\nfrom input_ids\nto transformer.wte (input)");
});

test("an operation is called once; one that is written as a sign, by its word too", () => {
  const { boxes } = scene;
  const textOf = (/** @type {string} */ name) => describeBox(graph, boxes[indexOf(scene, name)]);
  assert.match(textOf("transformer.add"), /^\+ \(add, operation\)/);
  assert.match(textOf("transformer.arange"), /^arange \(operation\)/);
});
