import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { compactSvg } from "../src/compact.js";
import { sceneToSvg } from "../src/svg.js";
import { PALETTES } from "../src/theme.js";
import { allOpen } from "../src/visible.js";
import { documentNamed, graphOf, sceneOf } from "./scenes.js";

/** @param {string} svg @returns {Document} */
function parse(svg) {
  const { window } = new JSDOM("");
  const parsed = new window.DOMParser().parseFromString(svg, "image/svg+xml");
  assert.equal(parsed.querySelector("parsererror"), null);
  return parsed;
}

/** @param {Document} parsed */
const words = (parsed) => [...parsed.querySelectorAll("text")].map((text) => text.textContent).sort();

for (const name of ["mlp", "decoder", "crash", "hostile", "nested", "opaque", "reused"]) {
  test(`${name}: the compact picture says the same, in the same places`, () => {
    const graph = graphOf(documentNamed(name));
    const scene = sceneOf(graph, allOpen(graph));
    const plain = parse(sceneToSvg(scene, graph, PALETTES.light));
    const text = compactSvg(scene, graph, PALETTES.light, { isNamed: true });
    const compact = parse(text);
    assert.deepEqual(words(compact), words(plain));
    assert.equal(compact.documentElement.getAttribute("viewBox"), plain.documentElement.getAttribute("viewBox"));
    const named = [...compact.querySelectorAll("g[data-name]")].map((group) => group.getAttribute("data-name"));
    assert.deepEqual(named.sort(), scene.boxes.map((box) => box.item.name).sort());
    assert.equal(compact.querySelectorAll("script, foreignObject, image").length, 0);
    assert.ok(text.length < sceneToSvg(scene, graph, PALETTES.light).length * 0.75);
  });
}

test("every line begins and ends where the plain picture's does, to a px", () => {
  const graph = graphOf(documentNamed("decoder"));
  const scene = sceneOf(graph, allOpen(graph));
  const lines = [...parse(compactSvg(scene, graph, PALETTES.light)).querySelectorAll("path")].flatMap((path) =>
    [...(path.getAttribute("d") ?? "").matchAll(/M(-?\d+) (-?\d+)c([^M]+)/g)].map(([, x, y, moves]) => {
      const numbers = (moves.match(/-?\d+/g) ?? []).map(Number);
      const ends = numbers.filter((_value, at) => at % 6 >= 4);
      const sum = (/** @type {number} */ side) =>
        ends.reduce((all, value, at) => all + (at % 2 === side ? value : 0), 0);
      return [Number(x), Number(y), Number(x) + sum(0), Number(y) + sum(1)];
    }),
  );
  const wanted = scene.routes.map(({ points }) => [...points.slice(0, 2), ...points.slice(-2)].map(Math.round));
  const key = (/** @type {number[]} */ row) => row.join();
  assert.deepEqual(lines.map(key).sort(), wanted.map(key).sort());
});

test("quotes in names end no attribute", () => {
  const graph = graphOf(documentNamed("mlp"));
  const parsed = parse(compactSvg(sceneOf(graph), { ...graph, title: `it's "<b>"` }, PALETTES.dark));
  assert.equal(parsed.documentElement.getAttribute("aria-label"), `it's "<b>"`);
});
