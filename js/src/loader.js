/**
 * Entry of a view in a notebook, the only script that travels with each: fetches the bundle from the kernel's runtime
 * model once per page, and starts the view.
 *
 * Traits of the view's model that are read here: `_bundle` (digest of the bundle; two versions on a page stay apart),
 * `_runtime` (`IPY_MODEL_` and the id of the model that has the bundle), `_fallback` (key of the output that stands in
 * for the view until it runs). The runtime's: `_script`, `_wasm` (gzip).
 *
 * The work is done in `render`: anywidget ends `initialize` after two seconds.
 *
 * @typedef {{get: (name: string) => any, widget_manager?: {get_model: (id: string) => Promise<Model>}}} Model
 * @typedef {{getModel?: (reference: string) => Promise<Model>}} Host
 * @typedef {{render: (context: object) => Promise<() => void>}} View
 * @typedef {{view: View, wasm: Uint8Array<ArrayBuffer>}} Bundle
 */

const PREFIX = "IPY_MODEL_";

export default { render };

/** @param {{model: Model, el: HTMLElement, host?: Host}} context */
async function render({ model, el, host }) {
  try {
    const { view, wasm } = await bundleOf(model, host);
    const end = await view.render({ model, el, wasm });
    const style = hideFallback(el.ownerDocument, model.get("_fallback"));
    return () => {
      style.remove();
      end();
    };
  } catch (error) {
    const notice = el.ownerDocument.createElement("p");
    notice.setAttribute("role", "alert");
    notice.textContent = `torchatlas could not start: ${error}`;
    el.append(notice);
    throw error;
  }
}

/** @type {(model: Model, host?: Host) => Promise<Bundle>} */
function bundleOf(model, host) {
  const page = /** @type {Record<symbol, Map<string, Promise<Bundle>>>} */ (/** @type {unknown} */ (globalThis));
  const bundles = (page[Symbol.for("torchatlas")] ??= new Map());
  const digest = model.get("_bundle");
  const found = bundles.get(digest) ?? fetchBundle(model, host);
  bundles.set(digest, found);
  // The next view tries again.
  found.catch(() => bundles.delete(digest));
  return found;
}

/** @type {(model: Model, host?: Host) => Promise<Bundle>} */
async function fetchBundle(model, host) {
  const id = model.get("_runtime").slice(PREFIX.length);
  const runtime = await runtimeOf(id, model, host);
  const [script, wasm] = await Promise.all(["_script", "_wasm"].map((name) => unpack(runtime.get(name))));
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const module = await import(address);
  URL.revokeObjectURL(address);
  return { view: module.default, wasm };
}

/** @type {(id: string, model: Model, host?: Host) => Promise<Model>} */
async function runtimeOf(id, { widget_manager: manager }, host) {
  if (host?.getModel) {
    const found = await host.getModel(`anywidget:${id}`).catch(() => null);
    if (found?.get("_script")) return found;
  }
  // Before anywidget 0.11 there is no other way to a second model.
  if (!manager) throw new Error("this version of anywidget can't reach the model that carries the view");
  return manager.get_model(id);
}

/** @param {DataView} packed @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function unpack(packed) {
  const bytes = /** @type {Uint8Array<ArrayBuffer>} */ (
    new Uint8Array(packed.buffer, packed.byteOffset, packed.byteLength)
  );
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @type {(document: Document, key: string) => HTMLStyleElement} */
function hideFallback(document, key) {
  const style = document.createElement("style");
  style.textContent = `[data-torchatlas-fallback="${key}"] { display: none !important; }`;
  document.head.append(style);
  return style;
}
