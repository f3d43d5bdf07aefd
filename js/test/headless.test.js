import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import vm from "node:vm";
import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { renderSvg, Utf8Decoder } from "../src/headless.js";
import { PALETTES } from "../src/theme.js";
import { documentNamed } from "./scenes.js";

const text = JSON.stringify(documentNamed("decoder"));

test("a document becomes an SVG with what the options ask for", () => {
  const closed = renderSvg(text, '{"depth": 0}');
  assert.ok(closed.includes('data-name="embed"') && !closed.includes('data-name="embed.embedding"'));
  assert.ok(renderSvg(text, '{"depth": "all"}').includes('data-name="layers.3.attn.softmax"'));
  assert.ok(renderSvg(text, '{"theme": "dark"}').includes(PALETTES.dark.background));
  assert.ok(renderSvg(text, '{"depth": 0, "highlighted": ["embed.embedding"]}').includes(PALETTES.light.hit));
  assert.ok(renderSvg(text, "").includes("<title>Decoder</title>"));
});

test("a document that can't be read is refused", () => {
  assert.throws(() => renderSvg('{"schema_version": 99}', "{}"), /version 99/);
});

test("it runs where there is nothing but the language", async () => {
  const entry = fileURLToPath(new URL("../src/headless.js", import.meta.url));
  const bundle = await build({
    ...{
      entryPoints: [entry],
      bundle: true,
      write: false,
      format: "iife",
      globalName: "torchatlas",
      logLevel: "silent",
    },
    define: { "import.meta.url": '""' },
  });
  const context = vm.createContext({ text });
  vm.runInContext(`${bundle.outputFiles[0].text}; globalThis.svg = torchatlas.renderSvg(text, "{}");`, context);
  assert.equal(context.svg, renderSvg(text, "{}"));
});

test("UTF-8 is decoded as TextDecoder does it", async () => {
  const decoder = new Utf8Decoder();
  for (const sample of ["", "plain", "é 名前 😀", await readFile(new URL(import.meta.url), "utf8")]) {
    assert.equal(decoder.decode(new TextEncoder().encode(sample)), sample);
  }
  assert.equal(decoder.decode(Uint8Array.from([0x61, 0xff, 0x62, 0xe5, 0x90])), "a\ufffdb\ufffd\ufffd");
});
