/**
 * Entry of the notebook widget: joins a view with the model that the kernel shares. The loader (loader.js) calls it.
 *
 * Traits, all described in widget.py: `_document` (JSON, gzip), `_options` (see options.js), `look` and `commands` (from
 * Python), `selected` (written by both sides), `opened`, `visible` and `done` (written by the view).
 *
 * @typedef {Object} Model the part of anywidget's model that is used
 * @property {(name: string) => any} get
 * @property {(name: string, value: unknown) => void} set
 * @property {() => void} save_changes
 * @property {(content: object, callbacks?: object) => void} send
 * @property {(event: string, handler: (...given: any[]) => void) => void} on
 * @property {(event: string, handler: (...given: any[]) => void) => void} off
 */
import { askKernel } from "./kernel.js";
import { unpack } from "./packed.js";
import { mount } from "./view.js";

export default { render };

/**
 * @param {{model: Model, el: HTMLElement, wasm: Uint8Array}} context wasm: Graphviz; the same object for all views of a page,
 *   so that they share a worker
 * @returns {Promise<() => void>} ends the view
 */
async function render({ model, el, wasm }) {
  const packed = /** @type {DataView<ArrayBuffer>} */ (model.get("_document"));
  const bytes = new Uint8Array(packed.buffer, packed.byteOffset, packed.byteLength);
  const source = JSON.parse(new TextDecoder().decode(await unpack(bytes)));
  // ipywidgets marks views without a kernel by a class; where another front end does not, silence tells.
  const isConnected = () => el.closest(".jupyter-widgets-disconnected") === null;
  const kernel = askKernel(model, (problem) => view.update({ problem }), isConnected);
  let isSaving = false;
  const write = (/** @type {Record<string, unknown>} */ values) => {
    const changed = Object.entries(values).filter(([name, value]) => !isSame(model.get(name), value));
    for (const [name, value] of changed) model.set(name, value);
    if (changed.length === 0 || isSaving) return;
    isSaving = true;
    // What changes together travels together: each message costs a kilobyte of headers and answers.
    queueMicrotask(() => {
      isSaving = false;
      model.save_changes();
    });
  };
  let done = /** @type {number} */ (model.get("done"));
  const newCommands = () => {
    const rows = /** @type {[number, string, string[]][]} */ (model.get("commands"));
    const fresh = rows.filter(([number]) => number > done);
    done = Math.max(done, ...rows.map(([number]) => number));
    return fresh.map(([, kind, names]) => [kind, names]);
  };
  const view = mount(el, source, {
    ...model.get("_options"),
    ...model.get("look"),
    opened: model.get("opened"),
    commands: newCommands(),
    selected: model.get("selected"),
    wasm,
    values: kernel.ask,
    onSelect: (/** @type {string[]} */ selected) => write({ selected }),
    onOpen: (/** @type {string[]} */ opened) => write({ opened, done }),
    onVisible: (/** @type {import("./types.js").Item[]} */ items) =>
      write({ visible: items.map(({ kind, id }) => (kind === "node" ? -1 - id : id)) }),
  });
  const handlers = {
    "change:selected": () => {
      const selected = model.get("selected");
      if (!isSame(selected, view.atlas.selection)) view.update({ selected });
    },
    "change:look": () => view.update(model.get("look")),
    "change:commands": () => view.update({ commands: newCommands() }),
  };
  for (const [event, handler] of Object.entries(handlers)) model.on(event, handler);
  return () => {
    for (const [event, handler] of Object.entries(handlers)) model.off(event, handler);
    kernel.end();
    view.destroy();
  };
}

/** @type {(one: unknown, other: unknown) => boolean} */
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
