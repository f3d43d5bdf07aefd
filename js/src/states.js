/**
 * Which state a view starts in, and the states that its controls lead to. Pure.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 * @typedef {import("./visible.js").State} State
 */
import {
  closedState,
  closeState,
  depthState,
  foldState,
  indexGraph,
  initialState,
  openState,
  revealState,
  unfoldState,
} from "./visible.js";
import { failurePlace } from "./banner.js";

/**
 * @param {Graph} graph
 * @param {Pick<import("./options.js").Options, "depth"|"opened"|"commands"|"selected"|"showConstants"|"foldRepeats">} options
 * @returns {State}
 */
export function startState(graph, options) {
  const { hide } = closedState();
  if (options.showConstants !== null) hide.constants = !options.showConstants;
  let state = outset(graph, options, hide);
  if (options.foldRepeats === false) state = { ...state, unfolded: new Set(indexGraph(graph).repeatOf.keys()) };
  const place = failurePlace(graph);
  if (place !== "") state = revealState(graph, state, place);
  for (const command of options.commands) state = obey(graph, state, command);
  for (const name of options.selected) state = revealState(graph, state, name);
  return {
    ...state,
    hide: options.showConstants === null ? state.hide : { ...state.hide, constants: !options.showConstants },
  };
}

/** @type {(graph: Graph, options: Pick<import("./options.js").Options, "depth"|"opened"|"foldRepeats">, hide: State["hide"]) => State} */
function outset(graph, { depth, opened, foldRepeats }, hide) {
  if (opened !== null) return opened.reduce((now, name) => openByName(graph, now, name), depthState(graph, 1, hide));
  return depth === null ? { ...initialState(graph), hide } : levelsState(graph, depth, hide, foldRepeats !== false);
}

/** @type {(graph: Graph, state: State, command: import("./options.js").Command) => State} */
export function obey(graph, state, [kind, names]) {
  const { callByName } = indexGraph(graph);
  if (kind === "open") return names.reduce((now, name) => openByName(graph, now, name), state);
  if (kind === "focus") return names.reduce((now, name) => revealState(graph, now, name), state);
  const calls = names.map((name) => callByName.get(name)).filter((id) => id !== undefined);
  return calls.reduce((now, id) => closeById(graph, now, id), state);
}

/**
 * @param {Graph} graph
 * @param {number} levels of modules that are open; with 0 all are closed
 * @param {State["hide"]} hide
 * @param {boolean} [isFolding] open one member of each repeat only
 */
export function levelsState(graph, levels, hide, isFolding = true) {
  return depthState(graph, levels + 1, hide, isFolding);
}

/**
 * @param {Item[]} items
 * @returns {{deepest: number, shallowest: number}} levels that are open somewhere, levels that are open everywhere
 */
export function openLevels(items) {
  let deepest = 0;
  let shallowest = Infinity;
  for (const item of items) {
    if (item.isOpen) deepest = Math.max(deepest, item.depth + 1);
    else if (item.isOpenable && item.kind === "call") shallowest = Math.min(shallowest, item.depth);
  }
  return { deepest, shallowest: Math.min(shallowest, deepest) };
}

/**
 * @param {Graph} graph
 * @param {State} state
 * @param {string} name of a call
 * @returns {State} in which it is open and seen
 */
export function openByName(graph, state, name) {
  const id = indexGraph(graph).callByName.get(name);
  if (id === undefined) return state;
  return openState(graph, revealState(graph, state, name), { kind: "call", id, members: [] });
}

/**
 * Close a call. One that was taken out of a folded repeat alone goes back, so that opening and closing leaves no trace.
 *
 * @param {Graph} graph
 * @param {State} state
 * @param {number} id of a call
 * @returns {State}
 */
export function closeById(graph, state, id) {
  const closed = closeState(graph, state, { kind: "call", id });
  const run = indexGraph(graph).repeatOf.get(id);
  const shown = run?.members.filter((member) => closed.unfolded.has(member)) ?? [];
  return shown.length === 1 && shown[0] === id ? foldState(graph, closed, id) : closed;
}

/**
 * @param {Graph} graph
 * @param {State} state
 * @param {Item} item
 * @param {boolean} isWhole of a repeat: all members instead of one
 * @returns {State} the item opened or closed
 */
export function toggle(graph, state, item, isWhole) {
  if (item.isOpen) return closeById(graph, state, item.id);
  if (!item.isOpenable) return state;
  if (item.kind === "repeat" && isWhole) return unfoldState(graph, state, item, "all");
  return openState(graph, state, item);
}

/**
 * What stands for a node or call in a picture: itself, or the closed call or folded repeat around it.
 *
 * @param {Graph} graph
 * @param {Item[]} items
 * @returns {(name: string) => number} index into items; -1 where nothing does
 */
export function standInFinder(graph, items) {
  const { callByName, nodeByName } = indexGraph(graph);
  const byName = new Map(items.map((item, index) => [item.name, index]));
  const byCall = new Map(items.flatMap((item, index) => item.members.map((id) => [id, index])));
  return (name) => {
    const own = byName.get(name);
    if (own !== undefined) return own;
    const node = nodeByName.get(name);
    let call = node === undefined ? (callByName.get(name) ?? null) : (graph.nodes[node]?.call ?? null);
    while (call !== null) {
      const found = byCall.get(call) ?? byName.get(graph.calls[call]?.name ?? "");
      // An open call does not stand for what a filter hides inside it.
      if (found !== undefined) return items[found]?.isOpen ? -1 : found;
      call = graph.calls[call]?.parent ?? null;
    }
    return -1;
  };
}
