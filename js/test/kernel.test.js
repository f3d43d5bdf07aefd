import assert from "node:assert/strict";
import { test } from "node:test";
import { askKernel, BUSY_MS, SILENT_MS, STATES } from "../src/kernel.js";
import { heatColour } from "../src/values.js";

/** A model as anywidget gives it, and what was sent through it. */
function fakeModel() {
  /** @type {Map<string, (...given: any[]) => void>} */
  const handlers = new Map();
  /** @type {any[]} */
  const sent = [];
  const model = {
    get: () => undefined,
    set: () => undefined,
    save_changes: () => undefined,
    send: (/** @type {object} */ message, /** @type {any} */ callbacks) => sent.push({ ...message, callbacks }),
    on: (/** @type {string} */ event, /** @type {any} */ handler) => handlers.set(event, handler),
    off: (/** @type {string} */ event) => handlers.delete(event),
  };
  return { model, handlers, sent };
}

test("each answer of the kernel goes to the question that it belongs to", async () => {
  const { model, handlers, sent } = fakeModel();
  /** @type {string[]} */
  const problems = [];
  const kernel = askKernel(
    /** @type {any} */ (model),
    (text) => problems.push(text),
    () => true,
  );
  const first = kernel.ask("a", null, assert.fail);
  const second = kernel.ask("b", [1], assert.fail);
  assert.deepEqual(
    sent.map(({ type, name, at }) => [type, name, at]),
    [
      ["values", "a", null],
      ["values", "b", [1]],
    ],
  );
  const answer = /** @type {(...given: any[]) => void} */ (handlers.get("msg:custom"));
  const buffer = new DataView(new Float32Array([1.5, -2]).buffer);
  const picture = { rows: 1, columns: 2, buffer: 0, low: -2, high: 1.5, at: [], sizes: [], of: [1, 2] };
  answer({ type: "values", id: sent[1].id, error: "RuntimeError: no" }, []);
  answer({ type: "problem", text: "on_select: ValueError" }, []);
  answer({ type: "other", id: sent[0].id }, []);
  answer({ type: "values", id: sent[0].id, tensors: [{ shape: [2], picture }] }, [buffer]);
  await assert.rejects(second, /RuntimeError: no/);
  assert.deepEqual((await first)[0].picture?.numbers, [1.5, -2]);
  assert.deepEqual(problems, ["on_select: ValueError"]);
  kernel.end();
  assert.equal(handlers.size, 0);
});

test("the panel is told whether the kernel is busy, computes or is gone, and a question outlives all of that", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { model, handlers, sent } = fakeModel();
  let isConnected = true;
  /** @type {string[]} */
  const said = [];
  const kernel = askKernel(/** @type {any} */ (model), assert.fail, () => isConnected);
  const asked = kernel.ask("a", null, (text) => said.push(text));
  t.mock.timers.tick(BUSY_MS - 1);
  assert.deepEqual(said, []);
  t.mock.timers.tick(1);
  t.mock.timers.tick(SILENT_MS);
  assert.deepEqual(said, [STATES.busy, STATES.silent]);
  sent[0].callbacks.iopub.status({ content: { execution_state: "busy" } });
  t.mock.timers.tick(BUSY_MS);
  assert.deepEqual(said.slice(2), [STATES.computing]);
  const changed = /** @type {() => void} */ (handlers.get("comm_live_update"));
  isConnected = false;
  changed();
  await null;
  assert.deepEqual(said.slice(3), [STATES.gone]);
  assert.equal(sent.length, 1);
  isConnected = true;
  changed();
  await null;
  assert.deepEqual(sent[1].id, sent[0].id);
  handlers.get("msg:custom")?.({ type: "values", id: sent[1].id, tensors: [] }, []);
  assert.deepEqual(await asked, []);
  t.mock.timers.tick(SILENT_MS);
  assert.equal(said.length, 4);
});

test("a front end that refuses to send has no kernel", () => {
  const { model } = fakeModel();
  model.send = () => {
    throw new Error("Kernel is dead");
  };
  /** @type {string[]} */
  const said = [];
  askKernel(/** @type {any} */ (model), assert.fail, () => true).ask("a", null, (text) => said.push(text));
  assert.deepEqual(said, [STATES.gone]);
});

test("heat maps show zero as white, both ends of the range at most in full, and NaN in a colour of its own", () => {
  const zero = heatColour(0, -1, 4);
  assert.deepEqual(heatColour(0, 0, 0), zero);
  assert.notDeepEqual(heatColour(-4, -1, 4), heatColour(4, -1, 4));
  assert.deepEqual(heatColour(9, -1, 4), heatColour(4, -1, 4));
  assert.ok(heatColour(-1, -1, 4)[2] > heatColour(-4, -1, 4)[2]);
  assert.equal(new Set([zero, heatColour(NaN, -1, 4), heatColour(4, -1, 4)].map(String)).size, 3);
});
