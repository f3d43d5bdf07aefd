/**
 * The script of the output that stands in for a live view (python/torchatlas/fallback.py): holds the output back while a view
 * is on its way, and draws the map when the output comes into sight. It stands in every such output, so it is short; it
 * imports nothing, and all of it is inside one function.
 *
 * The first script inside the output is its data, four lines: digest of the map's code, the code, the graph, the options.
 * The code is there in one output of a notebook only, from which the others take it.
 *
 * @typedef {{codes: Record<string, string>, waiting: (() => void)[]}} Shared
 *
 * @param {string} key of the output
 * @param {number} made when it was made, in ms
 */
export default (key, made) => {
  const page = /** @type {Record<symbol, Shared>} */ (/** @type {unknown} */ (globalThis));
  const shared = (page[Symbol.for("torchatlas map")] ??= { codes: {}, waiting: [] });
  const unpack = (/** @type {string} */ text) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  /** @type {(part: Element, code: string, graph: string, options: string) => Promise<void>} */
  const draw = async (part, code, graph, options) => {
    const still = /** @type {HTMLElement} */ (part.querySelector("[data-torchatlas-still]"));
    const host = document.createElement("div");
    try {
      const address = URL.createObjectURL(new Blob([await unpack(code)], { type: "text/javascript" }));
      const { mount } = await import(address);
      URL.revokeObjectURL(address);
      const text = await unpack(graph);
      still.style.display = "none";
      still.before(host);
      mount(host, text, options);
    } catch (error) {
      still.style.display = "";
      host.remove();
      console.warn(`torchatlas: no map: ${error}`);
    }
  };
  /** @type {NodeListOf<HTMLElement>} */
  const parts = document.querySelectorAll(`[data-torchatlas-fallback="${key}"]`);
  for (const part of parts) {
    // A view that has just been asked for comes within 6 s; until then nothing flashes up.
    if (Date.now() - made < 30_000) {
      part.style.display = "none";
      setTimeout(() => (part.style.display = ""), 6000);
    }
    const [digest, code, graph, options] = (part.querySelector("script")?.textContent ?? "").trim().split("\n");
    if (!options || part.dataset.started) continue;
    part.dataset.started = "true";
    if (code) {
      shared.codes[digest] = code;
      for (const each of shared.waiting.splice(0)) each();
    }
    const begin = () => {
      const found = shared.codes[digest];
      if (found) draw(part, found, graph, options);
      else shared.waiting.push(begin);
    };
    new IntersectionObserver((seen, watch) => {
      if (!seen.some((each) => each.isIntersecting)) return;
      watch.disconnect();
      begin();
    }).observe(part);
  }
};
