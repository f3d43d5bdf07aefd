import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { createSearch } from "../src/search.js";

/** A search box over three names, and what it told. */
function open() {
  const { window } = new JSDOM("<body>");
  const { document } = window;
  /** @type {any[]} */
  const told = [];
  const names = ["transformer.wte", "transformer.wpe", "<b>x</b>"];
  const controller = new window.AbortController();
  const search = createSearch(document, controller.signal, {
    find: (query) => names.filter((name) => name.includes(query)),
    onFound: (found) => told.push(["found", found]),
    onPick: (name) => told.push(["pick", name]),
    describe: () => "Embedding",
    onLeave: () => told.push(["leave"]),
  });
  document.body.append(search.box);
  const input = /** @type {HTMLInputElement} */ (search.box.querySelector("input"));
  const list = /** @type {HTMLElement} */ (search.box.querySelector('[role="listbox"]'));
  const type = (/** @type {string} */ text) => {
    input.value = text;
    input.dispatchEvent(new window.Event("input"));
  };
  const press = (/** @type {string} */ key) =>
    input.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  return { window, controller, search, input, list, told, type, press };
}

test("typing lists what is found and how many there are", () => {
  const { search, input, list, told, type } = open();
  type("w");
  assert.deepEqual(told, [["found", ["transformer.wte", "transformer.wpe"]]]);
  assert.equal(search.box.querySelector(".count")?.textContent, "2 found");
  assert.deepEqual(
    [...list.querySelectorAll('[role="option"] b')].map((bold) => bold.textContent),
    ["wte", "wpe"],
  );
  assert.equal(input.getAttribute("aria-expanded"), "true");
  assert.equal(input.getAttribute("aria-activedescendant"), list.querySelector('[aria-selected="true"]')?.id);
});

test("arrows move, Enter picks, Enter again picks the next", () => {
  const { told, type, press } = open();
  type("transformer");
  press("ArrowDown");
  press("Enter");
  press("Enter");
  assert.deepEqual(told.slice(1), [
    ["pick", "transformer.wpe"],
    ["pick", "transformer.wte"],
  ]);
});

test("a click picks and closes the list", () => {
  const { window, list, told, type } = open();
  type("wpe");
  list.querySelector('[role="option"]')?.dispatchEvent(new window.MouseEvent("click", { bubbles: true }));
  assert.deepEqual(told.at(-1), ["pick", "transformer.wpe"]);
  assert.ok(list.hidden);
});

test("Escape empties the box, unmarks the map and leaves", () => {
  const { input, list, told, type, press, search } = open();
  type("w");
  assert.ok(search.isActive());
  press("Escape");
  assert.equal(input.value, "");
  assert.ok(list.hidden && !search.isActive());
  assert.deepEqual(told.slice(1), [["found", []], ["leave"]]);
});

test("nothing found is said, and names are text", () => {
  const { list, type } = open();
  type("zzz");
  assert.ok(list.textContent?.includes("Nothing found"));
  type("x");
  assert.equal(list.querySelector('[role="option"] b b'), null);
  assert.ok(list.textContent?.includes("<b>x</b>"));
});

test("an empty box offers examples", () => {
  const { window, input, list, told } = open();
  input.dispatchEvent(new window.FocusEvent("focus"));
  const example = list.querySelector("[data-example]");
  example?.dispatchEvent(new window.MouseEvent("click", { bubbles: true }));
  assert.equal(input.value, example?.getAttribute("data-example"));
  assert.deepEqual(told.at(-1), ["found", []]);
});

test("after the end nothing is heard", () => {
  const { controller, told, type } = open();
  controller.abort();
  type("w");
  assert.deepEqual(told, []);
});
