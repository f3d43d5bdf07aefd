/** Entry of exported pages: unpacks the page's data elements and fills the window with the view. */
import { fromBase64, unpack } from "./packed.js";
import { mount } from "./view.js";

/**
 * @param {Document} document whose data elements hold the packed document, Graphviz and the options
 * @returns {Promise<ReturnType<typeof mount>>}
 */
export async function mountPage(document) {
  const packed = fromBase64(textOf(document, "document"));
  const source = JSON.parse(new TextDecoder().decode(await unpack(packed)));
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
