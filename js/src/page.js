/**
 * Entry of exported pages: reads the page's data elements and fills the window with the view. The bundle puts `start` on
 * the global `torchatlas`.
 */
import { fromBase64, unpack } from "./packed.js";
import { mount } from "./view.js";

/**
 * May be called while the page is still being read: of its data, Graphviz alone may come later.
 *
 * @param {Document} document
 * @returns {Promise<ReturnType<typeof mount>>}
 */
export async function start(document) {
  const packed = await unpack(fromBase64(textOf(document, "document")));
  const source = JSON.parse(new TextDecoder().decode(packed));
  document.title = typeof source?.title === "string" ? `${source.title} · torchatlas` : "torchatlas";
  // A page fills its window, whatever size was asked for in a cell.
  const options = { ...JSON.parse(textOf(document, "options") || "{}"), height: null, width: null };
  const target = /** @type {HTMLElement} */ (document.querySelector("main") ?? document.body);
  const wasm = whenRead(document).then(() => ({ packed: textOf(document, "wasm") }));
  return mount(target, source, { ...options, wasm, isPage: true });
}

/** @type {(document: Document) => Promise<void>} */
const whenRead = (document) =>
  new Promise((resolve) => {
    if (document.readyState !== "loading") resolve();
    else document.addEventListener("DOMContentLoaded", () => resolve(), { once: true });
  });

/** @type {(document: Document, name: string) => string} */
function textOf(document, name) {
  const holder = document.querySelector(`script[data-torchatlas="${name}"]`);
  if (!holder) throw new Error(`the page has no ${name}`);
  return holder.textContent?.trim() ?? "";
}
