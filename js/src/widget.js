/**
 * Entry of the notebook widget (anywidget).
 *
 * Traits: `_document` (bytes: the JSON document, gzip), `_wasm` (bytes: Graphviz, gzip; may be empty), `_options` (see
 * options.js), `selected` (names; written by both sides), `opened` (names of open calls; written by the view).
 *
 * @typedef {Object} Model the part of anywidget's model that is used
 * @property {(name: string) => any} get
 * @property {(name: string, value: unknown) => void} set
 * @property {() => void} save_changes
 * @property {(event: string, handler: () => void) => void} on
 * @property {(event: string, handler: () => void) => void} off
 */
import { unpack } from "./page.js";
import { mount } from "./view.js";

/**
 * @param {{model: Model, el: HTMLElement}} context
 * @returns {Promise<() => void>} ends the view
 */
export async function render({ model, el }) {
  const wasm = bytesOf(model.get("_wasm"));
  const source = JSON.parse(new TextDecoder().decode(await unpack(bytesOf(model.get("_document")))));
  const write = (/** @type {string} */ name, /** @type {string[]} */ names) => {
    if (JSON.stringify(model.get(name)) === JSON.stringify(names)) return;
    model.set(name, names);
    model.save_changes();
  };
  const view = mount(el, source, {
    ...model.get("_options"),
    wasm: wasm.byteLength > 0 ? unpack(wasm) : null,
    selected: model.get("selected"),
    onSelect: (/** @type {string[]} */ names) => write("selected", names),
    onOpen: (/** @type {string[]} */ names) => write("opened", names),
  });
  const follow = () => {
    const names = /** @type {string[]} */ (model.get("selected"));
    if (JSON.stringify(names) !== JSON.stringify(view.atlas.selection)) view.update({ selected: names });
  };
  model.on("change:selected", follow);
  return () => {
    model.off("change:selected", follow);
    view.destroy();
  };
}

/** @param {DataView | ArrayBuffer | Uint8Array} data @returns {Uint8Array<ArrayBuffer>} */
function bytesOf(data) {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  return new Uint8Array(/** @type {ArrayBuffer} */ (data.buffer), data.byteOffset, data.byteLength);
}
