/**
 * The property `atlas` of a view's root element.
 *
 * @typedef {import("./view.js").View} View
 *
 * @typedef {Object} Atlas what tests and tools may rely on
 * @property {Promise<void>} ready resolved after the first paint
 * @property {() => string[]} visible names of visible nodes and calls, in drawing order
 * @property {(name: string) => DOMRect | null} rect in the viewport; null where the name is not visible
 * @property {(name: string) => DOMRect | null} handle its open/close button
 * @property {(name: string) => Promise<void>} open
 * @property {(name: string) => Promise<void>} close
 * @property {() => Promise<void>} openAll
 * @property {() => Promise<void>} closeAll
 * @property {(levels: number) => Promise<void>} depth
 * @property {(name: string | string[]) => Promise<void>} select
 * @property {string[]} selection
 * @property {(text: string) => string[]} search
 * @property {(name: string) => Promise<void>} focus
 * @property {() => {nodes: number, edges: number, layout_ms: number, paint_ms: number, engine_calls: number, memo_hits: number}} stats
 */
import { handleRect } from "./marks.js";
import { findNames } from "./query.js";

/**
 * @param {View} view
 * @param {Promise<void>} ready
 * @returns {Atlas}
 */
export function makeAtlas(view, ready) {
  const boxNamed = (/** @type {string} */ name) => view.scene.boxes[view.stage.spatial.indexByName.get(name) ?? -1];
  return {
    ready,
    visible: () => view.scene.boxes.map((box) => box.item.name),
    rect: (name) => {
      const box = boxNamed(name);
      return box ? view.stage.toViewport(box) : null;
    },
    handle: (name) => {
      const box = boxNamed(name);
      const area = box ? handleRect(box) : null;
      return area ? view.stage.toViewport(area) : null;
    },
    open: (name) => view.open(name),
    close: (name) => view.close(name),
    openAll: () => view.openAll(),
    closeAll: () => view.closeAll(),
    depth: (levels) => view.depth(levels),
    select: (name) => view.select(Array.isArray(name) ? name : [name]),
    get selection() {
      return view.selection;
    },
    search: (text) => findNames(view.graph, text),
    focus: (name) => view.focus(name, false),
    stats: () => view.stats(),
  };
}

/**
 * Of a view that shows an error in place of a graph.
 *
 * @param {Error} error
 * @returns {Atlas}
 */
export function brokenAtlas(error) {
  const nothing = () => Promise.resolve();
  const ready = Promise.reject(error);
  // Whoever does not wait for it has the message on the screen.
  ready.catch(() => undefined);
  return {
    ready,
    visible: () => [],
    rect: () => null,
    handle: () => null,
    open: nothing,
    close: nothing,
    openAll: nothing,
    closeAll: nothing,
    depth: nothing,
    select: nothing,
    selection: [],
    search: () => [],
    focus: nothing,
    stats: () => ({ nodes: 0, edges: 0, layout_ms: 0, paint_ms: 0, engine_calls: 0, memo_hits: 0 }),
  };
}
