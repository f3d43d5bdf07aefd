import assert from "node:assert/strict";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { escapeXml, sceneToSvg } from "../src/svg.js";
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

for (const name of ["mlp", "decoder", "crash", "hostile", "nested", "opaque", "reused"]) {
  test(`${name} as SVG is well-formed and shows every box by its name`, () => {
    const graph = graphOf(documentNamed(name));
    const scene = sceneOf(graph, allOpen(graph));
    const parsed = parse(sceneToSvg(scene, graph, PALETTES.light));
    const names = [...parsed.querySelectorAll("[data-name]")].map((group) => group.getAttribute("data-name"));
    assert.deepEqual(names.sort(), scene.boxes.map((box) => box.item.name).sort());
    assert.equal(parsed.querySelectorAll("script, foreignObject, image").length, 0);
    assert.equal(parsed.querySelectorAll(".atlas-edges path").length, scene.routes.length * 2);
  });
}

test("names of a model are text, whatever they look like", () => {
  const graph = graphOf(documentNamed("hostile"));
  const svg = sceneToSvg(sceneOf(graph), graph, PALETTES.light);
  assert.ok(!svg.includes("<script"));
  assert.ok([...parse(svg).querySelectorAll("tspan")].some((span) => span.textContent?.includes("</script><script>")));
});

test("characters that XML forbids are replaced", () => {
  assert.equal(escapeXml('a\u0000\u0008\ud800b<&"'), "a\ufffd\ufffd\ufffdb&lt;&amp;&quot;");
  assert.equal(escapeXml("tab\there 名前 😀"), "tab\there 名前 😀");
});

test("drawing twice gives the same text", () => {
  const graph = graphOf(documentNamed("decoder"));
  const scene = sceneOf(graph);
  assert.equal(sceneToSvg(scene, graph, PALETTES.dark), sceneToSvg(scene, graph, PALETTES.dark));
});

test("a colour and a highlight reach the picture", () => {
  const graph = graphOf(documentNamed("mlp"));
  const scene = sceneOf(graph);
  const svg = sceneToSvg(scene, graph, PALETTES.light, {
    colourOf: () => "#123456",
    isHit: (box) => box === scene.boxes[1],
  });
  assert.ok(svg.includes("#123456") && svg.includes(PALETTES.light.hit));
});
