import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const source = new URL("../src/", import.meta.url);
const files = readdirSync(source, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith(".js"));

/** @type {Map<string, string[]>} what each file imports; files of our own by their path in js/src */
const imports = new Map(
  files.map((file) => {
    const text = readFileSync(new URL(file, source), "utf8");
    const found = [...text.matchAll(/^(?:import|export)\s(?:[^"';]*\sfrom\s)?"([^"]+)"/gm)].map((match) => match[1]);
    const base = new URL(file, source);
    return [
      file,
      found.map((path) => (path.startsWith(".") ? new URL(path, base).href.slice(source.href.length) : path)),
    ];
  }),
);

/** @param {string} file @returns {Set<string>} all that it imports, directly or not */
function reachable(file) {
  const seen = new Set();
  const stack = [...(imports.get(file) ?? [])];
  while (stack.length > 0) {
    const next = /** @type {string} */ (stack.pop());
    if (seen.has(next)) continue;
    seen.add(next);
    stack.push(...(imports.get(next) ?? []));
  }
  return seen;
}

test("every import of our own leads to a file", () => {
  for (const [file, found] of imports) {
    for (const path of found.filter((name) => name.endsWith(".js"))) assert.ok(imports.has(path), `${file}: ${path}`);
  }
});

test("nothing imports itself in a circle", () => {
  for (const file of imports.keys()) assert.ok(!reachable(file).has(file), file);
});

test("only the engine imports Graphviz", () => {
  const users = [...imports].filter(([, found]) => found.includes("@viz-js/viz")).map(([file]) => file);
  assert.deepEqual(users, ["engine/viz.js"]);
});

test("the pipeline up to the scene knows neither D3 nor what draws it", () => {
  const drawing = ["paint.js", "svg.js", "interact.js", "panel.js", "view.js", "dom.js"];
  for (const file of ["schema.js", "visible.js", "scopes.js", "measure.js", "layout.js", "engine/worker.js"]) {
    const found = reachable(file);
    assert.ok(![...found].some((path) => path.startsWith("d3-") || drawing.includes(path)), file);
  }
});

test("drawing, interaction and panels don't depend on each other or on the layout", () => {
  const parts = ["paint.js", "svg.js", "interact.js", "panel.js"];
  for (const file of parts) {
    const found = reachable(file);
    for (const other of [...parts, "layout.js"]) assert.ok(!found.has(other), `${file} imports ${other}`);
  }
});
