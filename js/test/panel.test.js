import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { panelContent, pythonString, splitDetail } from "../src/panel.js";
import { closedState } from "../src/visible.js";
import { levelsState } from "../src/states.js";
import { gpt2Document } from "./gpt2.js";
import { documentNamed, graphOf, indexOf, sceneOf } from "./scenes.js";

const { document } = new JSDOM("").window;

/** @type {(given?: Partial<import("../src/panel.js").PanelHandlers>) => import("../src/panel.js").PanelHandlers} */
const handlers = (given = {}) => ({
  onClose: () => undefined,
  copy: () => Promise.resolve(true),
  onGo: () => undefined,
  values: null,
  keptValues: null,
  run: null,
  onUnfold: () => undefined,
  onFold: () => undefined,
  ...given,
});

/** @type {(graph: import("../src/types.js").Graph, name: string, given?: any, note?: string | null, state?: any) => HTMLElement} */
function panelOf(graph, name, given = {}, note = null, state = undefined) {
  const scene = sceneOf(graph, state);
  const panel = document.createElement("div");
  panel.append(...panelContent(document, graph, scene.boxes[indexOf(scene, name)].item, note, handlers(given)));
  return panel;
}

const textOf = (/** @type {Element | null} */ found) => found?.textContent?.replace(/\s+/g, " ").trim();
/** @type {(panel: HTMLElement) => Record<string, string | undefined>} */
const rowsOf = (panel) =>
  Object.fromEntries(
    [...panel.querySelectorAll("dt")].map((term) => [term.textContent ?? "", textOf(term.nextElementSibling)]),
  );

test("a module shows its path, data, cost, source and the line that cuts it out", () => {
  const graph = graphOf(gpt2Document(12));
  const panel = panelOf(graph, "transformer.h.0.attn.c_attn");
  assert.equal(textOf(panel.querySelector("h2")), "c_attn Conv1D");
  assert.equal(textOf(panel.querySelector(".panel-path")), "transformer.h.0.attn.c_attn");
  assert.deepEqual(rowsOf(panel), {
    in: "1×128×768 float32",
    out: "1×128×2304 float32 · 1.18 MB",
    cost: "1,771,776 params · 450 MFLOPs",
  });
  assert.equal(textOf(panel.querySelector(".code-line.here")), "214attn_output = self.c_proj(attn_output)");
  assert.ok(textOf(panel)?.includes('trace.extract(node_out="transformer.h.0.attn.c_attn")'));
  assert.ok(!textOf(panel)?.includes("Values"));
});

test("an operation shows its arguments", () => {
  const panel = panelOf(graphOf(gpt2Document(12)), "transformer.h.0.attn.transpose_1");
  assert.equal(rowsOf(panel).arguments, "dim0=1dim1=2");
  assert.equal(rowsOf(panel).in, "input: 1×128×12×64 float32");
});

test("a module shows the parameters it holds itself", () => {
  const graph = graphOf(documentNamed("mlp"));
  const linear = graph.calls.find((call) => call.type === "Linear");
  assert.ok(linear);
  assert.match(rowsOf(panelOf(graph, linear.name)).parameters ?? "", /^weight \d+×\d+/);
});

test("what failed says why", () => {
  const graph = graphOf(documentNamed("crash"));
  const failed = graph.nodes[/** @type {number} */ (graph.error?.node)].name;
  const panel = panelOf(graph, failed);
  assert.ok(textOf(panel.querySelector(".failure"))?.includes(/** @type {any} */ (graph.error).message));
  assert.ok(!textOf(panel)?.includes("trace.extract"));
  assert.equal(panelOf(graph, "stem").querySelector(".failure"), null);
});

test("each of several failures tells of itself, with what would help", () => {
  const crashed = graphOf(documentNamed("crash"));
  const [first] = crashed.errors;
  const other = crashed.nodes.findIndex(({ name }) => name === "relu");
  const nodes = crashed.nodes.map((node, id) =>
    id === other ? { ...node, status: /** @type {const} */ ("failed") } : node,
  );
  const second = { ...first, node: other, message: "the second", suggestions: ["another size would pass"] };
  const graph = { ...crashed, nodes, errors: [first, second] };
  const said = textOf(panelOf(graph, nodes[other].name).querySelector(".failure"));
  assert.match(said ?? "", /the second.*→ another size would pass/s);
  assert.doesNotMatch(textOf(panelOf(graph, nodes[first.node ?? -1].name).querySelector(".failure")) ?? "", /second/);
});

test("names are text, never markup", () => {
  const graph = graphOf(documentNamed("hostile"));
  const name = "</script><script>alert(1)</script>";
  const panel = panelOf(graph, name);
  assert.equal(panel.querySelector("script"), null);
  assert.equal(textOf(panel.querySelector(".panel-path")), name);
});

test("copying says whether it worked", async () => {
  const panel = panelOf(graphOf(gpt2Document(12)), "input_ids", { copy: () => Promise.resolve(false) });
  const button = /** @type {HTMLButtonElement} */ (panel.querySelector(".panel-path button"));
  button.click();
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(button.getAttribute("aria-label"), "Copying is not allowed here");
});

test("a repeat can be unfolded in whole or in part", () => {
  const graph = graphOf(gpt2Document(12));
  /** @type {unknown[]} */
  const asked = [];
  const given = {
    run: { shown: 0, total: 12, members: [] },
    onUnfold: (/** @type {unknown} */ which) => asked.push(which),
  };
  const panel = panelOf(graph, "transformer.h.0", given, null, levelsState(graph, 1, closedState().hide));
  const [all, range] = /** @type {NodeListOf<HTMLButtonElement>} */ (panel.querySelectorAll("button.act"));
  const [from, to] = panel.querySelectorAll("input");
  all.click();
  from.value = "5";
  to.value = "2";
  range.click();
  assert.deepEqual(asked, ["all", { from: 1, to: 5 }]);
});

const measured = {
  ...{ shape: [3, 2, 4], dtype: "float32", count: 24, min: -1.32, max: 1.41, mean: 0.003, std: 0.214 },
  ...{ zeros: 0.25, nan: 1, inf: 2, histogram: [1, 4, 2] },
};

test("values appear when they arrive, and so does the reason why they don't", async () => {
  const graph = graphOf(gpt2Document(12));
  const panel = panelOf(graph, "input_ids", { values: () => Promise.resolve([measured]) });
  assert.ok(textOf(panel.querySelector(".values"))?.includes("waiting"));
  const broken = panelOf(graph, "input_ids", { values: () => Promise.reject(new Error("kernel is gone")) });
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(rowsOf(panel).range, "−1.32 … 1.41");
  assert.equal(rowsOf(panel).zeros, "25 %");
  assert.equal(rowsOf(panel)["NaN / Inf"], "1 / 2");
  assert.equal(panel.querySelectorAll(".histogram i").length, 3);
  assert.equal(textOf(broken.querySelector(".values")), "no values: kernel is gone");
});

test("a slider asks for the slice at its index, the axes without a choice have none", async () => {
  const graph = graphOf(gpt2Document(12));
  const picture = { rows: 2, columns: 4, buffer: 0, numbers: [0, 1, 2, 3, 4, 5, 6, 7], low: 0, high: 7 };
  /** @type {(number[] | null)[]} */
  const asked = [];
  const values = async (/** @type {string} */ _name, /** @type {number[] | null} */ at) => {
    asked.push(at);
    return [{ ...measured, picture: { ...picture, at: at ?? [0, 1], sizes: [1, 3], of: [2, 4] } }];
  };
  const panel = panelOf(graph, "input_ids", { values });
  await new Promise((resolve) => setTimeout(resolve));
  const sliders = /** @type {NodeListOf<HTMLInputElement>} */ (panel.querySelectorAll("input[type=range]"));
  assert.equal(sliders.length, 1);
  assert.equal(sliders[0].value, "1");
  sliders[0].value = "2";
  sliders[0].dispatchEvent(new /** @type {any} */ (panel.ownerDocument.defaultView).Event("change"));
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(asked, [null, [0, 2]]);
  assert.equal(panel.querySelector("canvas")?.getAttribute("aria-label"), "Heat map of 2 × 4 elements, from 0 to 7");
});

test("statistics that were measured while tracing are shown without a kernel, and not among the costs", () => {
  const document = gpt2Document(12);
  const metrics = { value_min: -1, value_max: 2, value_mean: 0.5, value_std: 0.1, value_zeros: 0.5 };
  document.nodes[0].metrics = { flops: 8, ...metrics, value_nan: 3, value_inf: 0 };
  const panel = panelOf(graphOf(document), "input_ids", {});
  assert.equal(rowsOf(panel).range, "−1 … 2");
  assert.equal(rowsOf(panel)["NaN / Inf"], "3 / 0");
  assert.equal(rowsOf(panel).cost, "8 FLOPs");
});

test("nothing is said of what is zero, not known or said already", () => {
  const document = gpt2Document(12);
  document.nodes[0].metrics = { flops: 0, size_bytes: 1024 };
  const known = rowsOf(panelOf(graphOf(document), "input_ids", {}));
  assert.equal(known.cost, undefined);
  assert.match(String(known.out), / · \d/);
  for (const spec of document.specs) spec.size_bytes = 0;
  assert.doesNotMatch(String(rowsOf(panelOf(graphOf(document), "input_ids", {})).out), / · /);
});

test("notes of the tracer and of the user are shown", () => {
  const document = gpt2Document(12);
  document.nodes[0].note = "came from outside";
  const panel = panelOf(graphOf(document), "input_ids", {}, "look here");
  assert.equal(textOf(panel.querySelector(".notes")), "came from outsidelook here");
});

test("extra_repr is split at its outer commas", () => {
  assert.deepEqual(splitDetail("3, 64, kernel_size=(7, 7), stride=[2, 2]"), [
    "3",
    "64",
    "kernel_size=(7, 7)",
    "stride=[2, 2]",
  ]);
  assert.deepEqual(splitDetail(""), []);
});

test("names become Python literals", () => {
  assert.equal(pythonString('a"b\\c\n名'), '"a\\"b\\\\c\\u000a名"');
});
