import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { errorBanner, failurePlace } from "../src/banner.js";
import { gpt2Document } from "./gpt2.js";
import { documentNamed, graphOf } from "./scenes.js";

const { window } = new JSDOM("");
const { document } = window;
const { signal } = new window.AbortController();

/** @param {Partial<import("../src/banner.js").BannerHandlers>} handlers */
const handling = (handlers) => ({
  onGo: () => undefined,
  onCopy: () => Promise.resolve(true),
  onClose: () => undefined,
  ...handlers,
});

/** @param {HTMLElement | null} banner @param {string} name */
function button(banner, name) {
  const found = [...(banner?.querySelectorAll("button") ?? [])].find(
    (made) => made.textContent === name || made.getAttribute("aria-label") === name,
  );
  assert.ok(found, `no button ${name}`);
  return found;
}

test("after a crash a banner tells what, where and what would help, and leads there", async () => {
  const crashed = graphOf(documentNamed("crash"));
  const [failure] = crashed.errors;
  const graph = {
    ...crashed,
    report: "# Report",
    errors: [{ ...failure, suggestions: ["`nn.Linear(7, 2)` would pass"] }],
  };
  /** @type {string[]} */
  const gone = [];
  /** @type {string[]} */
  const copied = [];
  const onCopy = (/** @type {string} */ report) => Promise.resolve(copied.push(report) > 0);
  const banner = errorBanner(document, graph, signal, handling({ onGo: (place) => gone.push(place), onCopy }));
  assert.equal(banner?.getAttribute("role"), "alert");
  assert.match(banner?.textContent ?? "", /RuntimeError: mat1 and mat2 shapes cannot be multiplied/);
  assert.equal(banner?.querySelector(".remedy")?.textContent, "nn.Linear(7, 2) would pass");
  assert.equal(banner?.querySelector(".remedy code")?.textContent, "nn.Linear(7, 2)");
  assert.match(banner?.querySelector(".where")?.textContent ?? "", /make_documents\.py:\d+ {2}\S/);
  button(banner, "Go to failure").click();
  assert.deepEqual(gone, ["body.1.1.linear"]);
  const copy = button(banner, "Copy report");
  copy.click();
  await Promise.resolve();
  await Promise.resolve();
  assert.deepEqual(copied, ["# Report"]);
  assert.equal(copy.textContent, "Copied");
  assert.equal(banner?.querySelector(".steps"), null);
});

test("arrows step through several failures, around the end", () => {
  const crashed = graphOf(documentNamed("crash"));
  const [failure] = crashed.errors;
  const second = { ...failure, message: "second", node: null, explanation: "" };
  /** @type {string[]} */
  const gone = [];
  const graph = { ...crashed, errors: [failure, second] };
  const banner = errorBanner(document, graph, signal, handling({ onGo: (place) => gone.push(place) }));
  assert.match(banner?.textContent ?? "", /1 of 2/);
  button(banner, "Next failure").click();
  assert.match(banner?.querySelector(".strong")?.textContent ?? "", /second/);
  assert.match(banner?.textContent ?? "", /2 of 2/);
  button(banner, "Next failure").click();
  button(banner, "Previous failure").click();
  assert.match(banner?.textContent ?? "", /2 of 2/);
  assert.deepEqual(gone, ["body.1.1", "body.1.1.linear", "body.1.1"]);
});

test("where nothing failed there is no banner and no place", () => {
  assert.equal(errorBanner(document, graphOf(documentNamed("mlp")), signal, handling({})), null);
  assert.equal(failurePlace(graphOf(documentNamed("crash"))), "body.1.1.linear");
  assert.equal(failurePlace(graphOf(gpt2Document(1))), "");
});
