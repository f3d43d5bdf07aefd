/** Entry of exported pages: unpacks the page's data elements and fills the window with the view. */
import { mount } from "./view.js";

/**
 * @param {Document} document whose data elements hold the packed document, Graphviz and the options
 * @returns {Promise<ReturnType<typeof mount>>}
 */
export async function mountPage(document) {
  const wasm = bytesOf(document, "wasm").then(unpack);
  // Without a waiter a failure would be reported as unhandled; the layout waits for it and copes.
  wasm.catch(() => undefined);
  const packed = await bytesOf(document, "document");
  const source = JSON.parse(new TextDecoder().decode(await unpack(packed)));
  document.title = typeof source?.title === "string" ? `${source.title} · torchatlas` : "torchatlas";
  // A page fills its window, whatever size was asked for in a cell.
  const options = { ...JSON.parse(textOf(document, "options") || "{}"), height: null, width: null };
  const target = /** @type {HTMLElement} */ (document.querySelector("main") ?? document.body);
  return mount(target, source, { ...options, wasm, isPage: true });
}

/** @type {(document: Document, name: string) => string} */
function textOf(document, name) {
  const holder = document.querySelector(`script[data-torchatlas="${name}"]`);
  if (!holder) throw new Error(`the page has no ${name}`);
  return holder.textContent?.trim() ?? "";
}

/** @type {(document: Document, name: string) => Promise<Uint8Array<ArrayBuffer>>} */
async function bytesOf(document, name) {
  return Uint8Array.from(atob(textOf(document, name)), (character) => character.charCodeAt(0));
}

/**
 * @param {Uint8Array<ArrayBuffer>} packed gzip
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function unpack(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
