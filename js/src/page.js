/** Entry of exported pages: reads the page's data elements and fills the window with the view. */
import { mount } from "./view.js";

/**
 * @param {Document} document whose data elements hold Graphviz and the options
 * @param {string} text the document that describes the graph; the page unpacks it while this bundle loads
 * @returns {ReturnType<typeof mount>}
 */
export function mountPage(document, text) {
  const source = JSON.parse(text);
  document.title = typeof source?.title === "string" ? `${source.title} · torchatlas` : "torchatlas";
  // A page fills its window, whatever size was asked for in a cell.
  const options = { ...JSON.parse(textOf(document, "options") || "{}"), height: null, width: null };
  const target = /** @type {HTMLElement} */ (document.querySelector("main") ?? document.body);
  return mount(target, source, { ...options, wasm: { packed: textOf(document, "wasm") }, isPage: true });
}

/** @type {(document: Document, name: string) => string} */
function textOf(document, name) {
  const holder = document.querySelector(`script[data-torchatlas="${name}"]`);
  if (!holder) throw new Error(`the page has no ${name}`);
  return holder.textContent?.trim() ?? "";
}
