/** The layout worker: gets the bytes of Graphviz once, then solves problems. Bundled as one classic script. */
import { unpacked } from "../packed.js";
import { createVizEngine } from "./viz.js";

/** @type {import("./viz.js").VizEngine | null} */
let engine = null;

/** @param {MessageEvent<{id: number, wasm?: import("./client.js").Wasm, problems?: import("./ranks.js").Problem[]}>} event */
self.onmessage = async ({ data }) => {
  const { id, wasm, problems } = data;
  if (wasm) {
    try {
      engine = await createVizEngine(await unpacked(wasm));
      self.postMessage({ id, answer: true });
    } catch (error) {
      self.postMessage({ id, answer: false, reason: String(error) });
    }
    return;
  }
  const answer = engine && problems ? await engine.solveAll(problems) : null;
  self.postMessage({ id, answer });
};
