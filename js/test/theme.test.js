import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { cssVariables, detectTheme, familyOf, PALETTES, watchTheme } from "../src/theme.js";

/** Relative luminance, WCAG 2.2. @param {string} colour #rrggbb */
function luminance(colour) {
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [r, g, b] = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** @type {(one: string, other: string) => number} */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

for (const palette of Object.values(PALETTES)) {
  const surfaces = [palette.background, palette.surface, palette.card, ...palette.levels];

  test(`text reaches AA on every surface of the ${palette.name} palette`, () => {
    for (const text of [palette.ink, palette.muted]) {
      for (const surface of [...surfaces, palette.code, palette.codeLine, palette.hitFill, palette.badFill]) {
        assert.ok(contrast(text, surface) >= 4.5, `${text} on ${surface}: ${contrast(text, surface).toFixed(2)}`);
      }
    }
    for (const text of [palette.input, palette.output, palette.parameter, palette.constant]) {
      assert.ok(contrast(text, palette.card) >= 4.5, `${text} on a card`);
    }
    for (const text of [palette.selected, palette.downstream]) {
      for (const surface of surfaces) assert.ok(contrast(text, surface) >= 4.5, `${text} on ${surface}: an edge label`);
    }
    for (const text of [palette.good, palette.bad]) assert.ok(contrast(text, palette.surface) >= 4.5);
    assert.ok(contrast(palette.bad, palette.badFill) >= 4.5);
  });

  test(`outlines and edges that mean something reach 3:1 in the ${palette.name} palette`, () => {
    const { edge, outline, selected, hit, bad, parameter, downstream } = palette;
    for (const colour of [edge, outline, selected, hit, bad, parameter, downstream]) {
      for (const surface of [palette.background, ...palette.levels]) {
        assert.ok(contrast(colour, surface) >= 3, `${colour} on ${surface}: ${contrast(colour, surface).toFixed(2)}`);
      }
    }
    for (const colour of Object.values(palette.families)) assert.ok(contrast(colour, palette.card) >= 3, colour);
    assert.ok(contrast(palette.control, palette.surface) >= 3);
  });
}

test("a module's family follows from its class", () => {
  const families = {
    Linear: "linear",
    Conv1D: "linear",
    Conv2d: "convolution",
    Conv1d: "convolution",
    LayerNorm: "norm",
    GPT2Attention: "attention",
    GPT2MLP: "feedforward",
    Embedding: "embedding",
    LSTM: "recurrent",
    Dropout: "passive",
    NewGELUActivation: "passive",
    GPT2Block: "other",
  };
  assert.deepEqual(Object.fromEntries(Object.keys(families).map((type) => [type, familyOf(type)])), families);
});

test("the theme is that of JupyterLab, VS Code, Colab, else the system's", () => {
  const themeOf = (/** @type {string} */ html) => detectTheme(new JSDOM(html).window.document);
  assert.equal(themeOf('<body data-jp-theme-light="false">'), "dark");
  assert.equal(themeOf('<body data-jp-theme-light="true" class="vscode-dark">'), "light");
  assert.equal(themeOf('<body class="vscode-dark">'), "dark");
  assert.equal(themeOf('<body data-vscode-theme-kind="vscode-high-contrast">'), "dark");
  assert.equal(themeOf('<body data-vscode-theme-kind="vscode-high-contrast-light">'), "light");
  assert.equal(themeOf('<html theme="dark"><body>'), "dark");
  const { window } = new JSDOM("<body>");
  window.matchMedia = /** @type {any} */ ((/** @type {string} */ query) => ({ matches: query.includes("dark") }));
  assert.equal(detectTheme(window.document), "dark");
});

test("a change of the theme is told until the watching is ended", async () => {
  const { window } = new JSDOM('<body data-jp-theme-light="true">');
  const kept = globalThis.MutationObserver;
  globalThis.MutationObserver = window.MutationObserver;
  try {
    const controller = new AbortController();
    /** @type {string[]} */
    const told = [];
    watchTheme(window.document, controller.signal, (theme) => told.push(theme));
    window.document.body.setAttribute("data-jp-theme-light", "false");
    await new Promise((resolve) => setTimeout(resolve));
    controller.abort();
    window.document.body.setAttribute("data-jp-theme-light", "true");
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual(told, ["dark"]);
  } finally {
    globalThis.MutationObserver = kept;
  }
});

test("the colours reach the stylesheet as custom properties", () => {
  const variables = cssVariables(PALETTES.dark);
  assert.equal(variables["color-scheme"], "dark");
  assert.equal(variables["--atlas-ink"], PALETTES.dark.ink);
  assert.ok(Object.values(variables).every((value) => typeof value === "string"));
});
