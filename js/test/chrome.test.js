import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { crumbContent, helpOverlay, legendContent, statusOf } from "../src/chrome.js";
import { pathTo } from "../src/details.js";
import { actionOf, KEYS } from "../src/interact.js";
import { minimapScale, showsAll, windowArea } from "../src/minimap.js";
import { readOptions } from "../src/options.js";
import { fileStem } from "../src/saving.js";
import { hiddenSummary } from "../src/toolbar.js";
import { gpt2Document } from "./gpt2.js";
import { documentNamed, graphOf } from "./scenes.js";

const { window } = new JSDOM("");
const { document } = window;
const { signal } = new window.AbortController();

test("the status line says what the picture is worth", () => {
  const line = (/** @type {any} */ changes) => {
    const { mark, text } = statusOf(graphOf({ ...gpt2Document(1), ...changes }));
    return `${mark} ${text}`.trim();
  };
  const coverage = { operations: 1412, nodes: 1410, opaque: 3, outside: 1 };
  assert.equal(line({}), "✓ proven 25 of 25 operations · replay bit-equal");
  assert.equal(
    line({ coverage, proof: { status: "not_run", reason: "" } }),
    "not verified · 1,410 of 1,412 operations · 3 opaque · 1 from outside torch",
  );
  assert.equal(
    line({ proof: { status: "not_applicable", reason: "random numbers" } }),
    "not verified: random numbers · 25 of 25 operations",
  );
  assert.equal(
    line({ proof: { status: "failed", reason: "output differs" } }),
    "✗ replay differs output differs · 25 of 25 operations",
  );
  const crashed = graphOf(documentNamed("crash"));
  assert.match(statusOf(crashed).text, /^RuntimeError in body\.1\.1\.linear/);
});

test("the breadcrumb leads from the model to the node", () => {
  const path = pathTo(graphOf(gpt2Document(1)), "transformer.h.0.attn.c_attn.addmm");
  assert.deepEqual(
    path.map(({ label }) => label),
    ["GPT2LMHeadModel", "transformer", "h.0", "attn", "c_attn", "addmm"],
  );
  /** @type {(string | null)[]} */
  const gone = [];
  const content = /** @type {HTMLElement[]} */ (crumbContent(document, path, (name) => gone.push(name)));
  for (const part of content) if (part.tagName === "BUTTON") part.click();
  assert.deepEqual(gone.slice(0, 3), [null, "transformer", "transformer.h.0"]);
  assert.equal(content.at(-1)?.getAttribute("aria-current"), "true");
});

test("the help names every key", () => {
  const help = helpOverlay(document, signal, () => undefined);
  for (const { help: text } of KEYS) assert.ok(help.textContent?.includes(text));
});

test("each key has one action", () => {
  const keys = KEYS.flatMap((row) => row.keys);
  assert.equal(new Set(keys).size, keys.length);
  assert.deepEqual(["/", "f", "Enter", "ArrowUp", "?", "Escape", "+", "-", "x"].map(actionOf), [
    "search",
    "fit",
    "toggle",
    "up",
    "help",
    "escape",
    "zoomIn",
    "zoomOut",
    null,
  ]);
});

test("a legend has a row per colour; without colours there is none", () => {
  const plain = { title: "dtype", isRamp: false, colourOf: () => null };
  const content = legendContent(document, { ...plain, legend: [{ label: "float32", colour: "#112233" }] });
  assert.deepEqual(
    content.map((part) => part.textContent),
    ["dtype", "float32"],
  );
  assert.deepEqual(legendContent(document, { ...plain, legend: [] }), []);
});

test("what is hidden is summed up", () => {
  const row = (
    /** @type {any} */ filter,
    /** @type {string} */ label,
    /** @type {number} */ count,
    /** @type {boolean} */ isHidden,
  ) => ({ filter, label, count, isHidden });
  const constants = row("constants", "constants", 26, true);
  assert.equal(hiddenSummary([constants, row("dead", "dead branches", 0, true)]), "26 constants");
  assert.equal(hiddenSummary([constants, row("parameters", "parameters", 4, true)]), "30 nodes");
  assert.equal(hiddenSummary([row("constants", "constants", 26, false)]), "nothing");
});

test("the minimap fits the scene and shows the window on it", () => {
  const scale = minimapScale({ width: 1000, height: 60000 }, 92, 150);
  assert.ok(Math.abs(60000 * scale.y - 134) < 0.001);
  assert.ok(scale.x / scale.y <= 10.001 && scale.left >= 8);
  const square = minimapScale({ width: 1000, height: 1000 }, 92, 150);
  const area = windowArea({ x: 0, y: 0, k: 2 }, 1000, 1000, { width: 1000, height: 1000 }, square, 92, 150);
  assert.ok(Math.abs(area.width - 500 * square.x) < 0.001);
  assert.equal(showsAll({ x: 0, y: 0, k: 0.5 }, 500, 500, { width: 1000, height: 1000 }), true);
  assert.equal(showsAll({ x: 0, y: 0, k: 1 }, 500, 500, { width: 1000, height: 1000 }), false);
});

test("options come in the names of both languages", () => {
  const read = readOptions({
    depth: 2,
    height: 600,
    width: null,
    show_constants: true,
    fold_repeats: false,
    theme: "blue",
  });
  assert.deepEqual(
    [read.depth, read.height, read.width, read.showConstants, read.foldRepeats, read.theme],
    [2, "600px", null, true, false, "auto"],
  );
  assert.deepEqual(
    [readOptions({}).depth, readOptions({ depth: -1 }).depth, readOptions({ height: "50vh" }).height],
    [null, null, "50vh"],
  );
});

test("a file's name is safe whatever the model is called", () => {
  assert.equal(fileStem("../a b/<c>"), "torchatlas__a_b_c_");
});
