import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { readAbridged } from "../src/abridged.js";
import { documentNamed, graphOf } from "./scenes.js";

const folder = new URL("../../tests/abridged/", import.meta.url);
const names = readdirSync(folder).map((file) => file.replace(".json", ""));

/** What the map needs of a graph, specs written out. @param {import("../src/types.js").Graph} graph */
function essence(graph) {
  const specOf = (/** @type {number} */ id) => {
    const { shape, dtype, sizeBytes } = graph.specs[id];
    return { shape, dtype, sizeBytes };
  };
  return {
    title: graph.title,
    calls: graph.calls.map(({ id, name, fqn, type, parent, status, inputs, outputs, metrics }) => ({
      ...{ id, name, fqn, type, parent, status, parameters: metrics.parameters ?? 0 },
      ...{ inputs: inputs.map(specOf), outputs: outputs.map(specOf) },
    })),
    nodes: graph.nodes.map(({ id, name, kind, op, call, status, outputs }) => {
      return { id, name, kind, op, call, status, outputs: outputs.map(specOf) };
    }),
    edges: graph.edges.map(({ spec, ...edge }) => ({ ...edge, spec: specOf(spec) })),
    inputs: graph.inputs,
    outputs: graph.outputs,
    errors: graph.errors.map(({ type, message, node, calls }) => ({ type, message, node, calls })),
  };
}

test("there is something to read", () => assert.ok(names.length > 5));

for (const name of names) {
  test(`${name}: the abridged graph is the document's`, () => {
    const raw = JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8"));
    assert.deepEqual(essence(readAbridged(raw)), essence(graphOf(documentNamed(name))));
  });
}
