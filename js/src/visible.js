/**
 * From the full graph and what is open to what is seen: a tree of items and the tensors between its leaves. Pure, linear,
 * without recursion.
 *
 * A state is never changed in place; `openState`, `closeState`, `unfoldState`, `foldState`, `revealState` give a new one.
 * The outermost call is not an item: its children are the top level.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 * @typedef {import("./types.js").Link} Link
 * @typedef {import("./types.js").VisibleGraph} VisibleGraph
 * @typedef {import("./graphindex.js").GraphIndex} GraphIndex
 * @typedef {import("./graphindex.js").Repeat} Repeat
 *
 * @typedef {{constants: boolean, parameters: boolean, shapeOnly: boolean, dead: boolean}} Hide parameters: buffers too
 * @typedef {Object} State
 * @property {Set<number>} open ids of calls that show their inside
 * @property {Set<number>} unfolded ids of members of repeats that are shown one by one; neighbours not listed stay folded
 * @property {Hide} hide what filters hide
 */
import { indexGraph } from "./graphindex.js";

export { indexGraph } from "./graphindex.js";

/** @type {Hide} */
const USUALLY_HIDDEN = { constants: true, parameters: true, shapeOnly: false, dead: false };

/** As many boxes as a first view may show: more would have to be smaller than can be read. */
const FIRST_VIEW_BOXES = 34;
/** A call without calls inside and with no more operations than this is not opened in the first view. */
const PLAIN_CALL_SIZE = 8;

/**
 * @param {Graph} graph
 * @param {State} state
 * @returns {VisibleGraph} its `hidden` counts all nodes of the graph that a filter hides when it is on
 */
export function visibleGraph(graph, state) {
  const index = indexGraph(graph);
  const { items, itemOfNode } = collectItems(graph, index, state);
  return { items, links: collectLinks(graph, index, state, itemOfNode), hidden: { ...index.counts } };
}

/**
 * @param {Graph} graph
 * @param {GraphIndex} index
 * @param {State} state
 * @returns {{items: Item[], itemOfNode: Int32Array}} the second: per node the leaf that stands for it, -1 for none
 */
function collectItems(graph, index, state) {
  /** @type {Item[]} */
  const items = [];
  const itemOfNode = new Int32Array(graph.nodes.length).fill(-1);
  /** Closed calls and the item that stands for all below them. */
  const itemOfCall = new Int32Array(graph.calls.length).fill(-1);
  /** @type {{children: Entry[], at: number, parent: number | null, depth: number}[]} */
  const stack = [{ children: entriesOf(graph, index, state, 0), at: 0, parent: null, depth: 0 }];
  while (stack.length > 0) {
    const frame = stack[stack.length - 1];
    if (frame.at === frame.children.length) {
      stack.pop();
      continue;
    }
    const entry = frame.children[frame.at++];
    const place = items.length;
    const first = entry.flow.find((child) => child < 0);
    const id = first === undefined ? entry.flow[0] : ~first;
    const inside = entry.kind === "call" ? entriesOf(graph, index, state, id) : [];
    const isOpen = inside.length > 0 && state.open.has(id);
    items.push({
      name: first === undefined ? graph.nodes[id].name : graph.calls[id].name,
      kind: entry.kind,
      id,
      parent: frame.parent,
      isOpen,
      isOpenable: !isOpen && (entry.kind === "repeat" || inside.length > 0),
      members: entry.members,
      depth: frame.depth,
    });
    if (isOpen) stack.push({ children: inside, at: 0, parent: place, depth: frame.depth + 1 });
    else {
      for (const child of entry.flow) {
        if (child < 0) itemOfCall[~child] = place;
        else itemOfNode[child] = place;
      }
    }
  }
  for (const call of graph.calls) {
    if (itemOfCall[call.id] < 0 && call.parent !== null) itemOfCall[call.id] = itemOfCall[call.parent];
  }
  for (const node of graph.nodes) {
    if (itemOfNode[node.id] < 0 && node.call !== null) itemOfNode[node.id] = itemOfCall[node.call];
  }
  return { items, itemOfNode };
}

/**
 * @typedef {{kind: "node"|"call"|"repeat", flow: number[], members: number[]}} Entry
 *
 * @param {Graph} graph
 * @param {GraphIndex} index
 * @param {State} state
 * @param {number} scope id of a call
 * @returns {Entry[]} what the call shows when it is open
 */
function entriesOf(graph, index, state, scope) {
  const flow = index.flow[scope];
  /** @type {Entry[]} */
  const entries = [];
  for (const id of index.state[scope]) {
    if (!isHidden(index, state.hide, id)) entries.push({ kind: "node", flow: [id], members: [] });
  }
  let at = 0;
  for (const run of index.repeats.get(scope) ?? []) {
    for (; at < run.from; at += 1) addSingle(index, state, entries, flow[at]);
    for (const { start, end } of segmentsOf(run, state.unfolded)) {
      const part = flow.slice(run.from + start * run.period, run.from + end * run.period);
      if (end - start > 1) entries.push({ kind: "repeat", flow: part, members: run.members.slice(start, end) });
      else for (const child of part) addSingle(index, state, entries, child);
    }
    at = run.from + run.period * run.members.length;
  }
  for (; at < flow.length; at += 1) addSingle(index, state, entries, flow[at]);
  return entries;
}

/** @type {(index: GraphIndex, state: State, entries: Entry[], child: number) => void} */
function addSingle(index, state, entries, child) {
  if (child < 0) {
    if (!(state.hide.dead && isDeadCall(index, ~child))) entries.push({ kind: "call", flow: [child], members: [] });
  } else if (!isHidden(index, state.hide, child)) entries.push({ kind: "node", flow: [child], members: [] });
}

/** @type {(index: GraphIndex, call: number) => boolean} judged by its own operations and those of its calls */
function isDeadCall(index, call) {
  if (index.size[call] === 0) return false;
  const stack = [call];
  while (stack.length > 0) {
    for (const child of index.flow[/** @type {number} */ (stack.pop())]) {
      if (child < 0) stack.push(~child);
      else if (index.isDead[child] === 0) return false;
    }
  }
  return true;
}

/**
 * @param {Repeat} run
 * @param {Set<number>} unfolded
 * @returns {{start: number, end: number}[]} groups shown alone and stretches of folded ones, in order
 */
function segmentsOf(run, unfolded) {
  const segments = [];
  let start = 0;
  while (start < run.members.length) {
    let end = start + 1;
    if (!unfolded.has(run.members[start])) {
      while (end < run.members.length && !unfolded.has(run.members[end])) end += 1;
    }
    segments.push({ start, end });
    start = end;
  }
  return segments;
}

/** @type {(index: GraphIndex, hide: Hide, node: number) => boolean} */
function isHidden(index, hide, node) {
  const filter = index.filterOf[node];
  if (filter !== null && hide[filter]) return true;
  return hide.dead && index.isDead[node] === 1;
}

/**
 * @param {Graph} graph
 * @param {GraphIndex} index
 * @param {State} state
 * @param {Int32Array} itemOfNode
 * @returns {Link[]}
 */
function collectLinks(graph, index, state, itemOfNode) {
  /** @type {Link[]} */
  const links = [];
  /** @type {Map<number, Link>} */
  const known = new Map();
  const origin = originFinder(index, state.hide);
  const slots = graph.edges.reduce((most, { tailSlot }) => Math.max(most, tailSlot), 0) + 1;
  for (const edge of graph.edges) {
    if (isHidden(index, state.hide, edge.head)) continue;
    const tensor = origin(edge.tail, edge.tailSlot);
    if (tensor === null) continue;
    const tail = itemOfNode[tensor.node];
    const head = itemOfNode[edge.head];
    if (tail < 0 || head < 0 || tail === head) continue;
    const key = (tensor.node * slots + tensor.slot) * (graph.nodes.length + graph.calls.length) + head;
    const link = known.get(key);
    if (link) {
      link.slots.push(edge.slot);
      continue;
    }
    const fresh = { tail, head, tailNode: tensor.node, tailSlot: tensor.slot, spec: edge.spec, slots: [edge.slot] };
    known.set(key, fresh);
    links.push(fresh);
  }
  return links;
}

/**
 * Where a tensor comes from when hidden operations are looked through: a hidden reshape hands on its input.
 *
 * @param {GraphIndex} index
 * @param {Hide} hide
 * @returns {(node: number, slot: number) => {node: number, slot: number} | null}
 */
function originFinder(index, hide) {
  /** @type {Map<number, {node: number, slot: number} | null>} */
  const known = new Map();
  return (node, slot) => {
    /** @type {{node: number, slot: number} | null} */
    let at = { node, slot };
    const passed = [];
    while (at !== null && isHidden(index, hide, at.node)) {
      const found = known.get(at.node);
      if (found !== undefined) {
        at = found;
        break;
      }
      passed.push(at.node);
      // A mark against cycles, replaced below.
      known.set(at.node, null);
      /** @type {boolean} */
      const isTransparent = index.filterOf[at.node] === "shapeOnly";
      /** @type {import("./types.js").GraphEdge | undefined} */
      const edge = isTransparent
        ? index.inEdges[at.node].find(({ tail }) => !isHiddenState(index, hide, tail))
        : undefined;
      at = edge ? { node: edge.tail, slot: edge.tailSlot } : null;
    }
    for (const id of passed) known.set(id, at);
    return at;
  };
}

/** @type {(index: GraphIndex, hide: Hide, node: number) => boolean} */
function isHiddenState(index, hide, node) {
  return index.filterOf[node] !== "shapeOnly" && isHidden(index, hide, node);
}

/**
 * A first view in which the whole is understood and the text can be read: as many levels as fit, repeats folded behind
 * one representative; after a crash the way to the failing operation.
 *
 * @param {Graph} graph
 * @returns {State}
 */
export function initialState(graph) {
  const index = indexGraph(graph);
  /** @type {State} */
  const state = closedState();
  let boxes = roomFor(graph, entriesOf(graph, index, state, 0));
  let level = [0];
  while (level.length > 0) {
    const siblings = level.map((scope) => candidatesOf(index, scope));
    const all = siblings.flat();
    // Where a level holds a single module, opening it is the only way to see anything.
    const limit = all.length === 1 ? 2 * FIRST_VIEW_BOXES : FIRST_VIEW_BOXES;
    const costOf = (/** @type {Candidate} */ { call, isRepeated }) =>
      roomFor(graph, entriesOf(graph, index, state, call)) + (isRepeated ? 1 : 0);
    /** @type {Candidate[]} */
    const opened = [];
    for (const group of siblings) {
      // Below the top, siblings are shown alike: all open or all closed.
      const parts = level[0] === 0 ? group.map((candidate) => [candidate]) : [group];
      for (const part of parts) {
        const cost = part.reduce((sum, candidate) => sum + costOf(candidate), 0);
        if (boxes + cost > limit) continue;
        boxes += cost;
        opened.push(...part);
      }
    }
    for (const { call, isRepeated } of opened) {
      state.open.add(call);
      if (isRepeated) state.unfolded.add(/** @type {number} */ (index.memberOf.get(call)));
    }
    level = opened.map(({ call }) => call);
  }
  return graph.error ? withFailure(graph, state) : state;
}

/** @type {(graph: Graph, entries: Entry[]) => number} boxes to read; a long list of outputs takes little room */
function roomFor(graph, entries) {
  const isOutput = (/** @type {Entry} */ { kind, flow }) => kind === "node" && graph.nodes[flow[0]].kind === "output";
  const outputs = entries.filter(isOutput).length;
  return entries.length - outputs + Math.min(outputs, 4);
}

/** @type {(graph: Graph, state: State) => State} the failing operation and what encloses it, in sight */
function withFailure(graph, state) {
  const { error } = graph;
  if (error === null) return state;
  const calls = [...error.calls];
  if (error.node !== null) calls.push(graph.nodes[error.node].call ?? 0);
  let shown = state;
  for (const id of calls) shown = openCall(graph, revealCall(graph, shown, id), id);
  return shown;
}

/**
 * @typedef {{call: number, isRepeated: boolean}} Candidate
 *
 * @param {GraphIndex} index
 * @param {number} scope
 * @returns {Candidate[]} calls worth opening in the first view; of a repeat only the first
 */
function candidatesOf(index, scope) {
  /** @type {Candidate[]} */
  const found = [];
  for (const child of index.flow[scope]) {
    if (child >= 0) continue;
    if (!isRepresentative(index, ~child)) continue;
    const isPlain = index.size[~child] <= PLAIN_CALL_SIZE && index.flow[~child].every((inner) => inner >= 0);
    if (!isPlain) found.push({ call: ~child, isRepeated: index.repeatOf.has(~child) });
  }
  return found;
}

/** @type {(index: GraphIndex, call: number) => boolean} whether it repeats nothing, or is in the first group of its run */
function isRepresentative(index, call) {
  const run = index.repeatOf.get(call);
  return run === undefined || index.memberOf.get(call) === run.members[0];
}

/** @returns {State} everything closed and folded */
export function closedState() {
  return { open: new Set(), unfolded: new Set(), hide: { ...USUALLY_HIDDEN } };
}

/**
 * @param {Graph} graph
 * @param {number} depth calls with a nesting depth below it are open; 1 shows the children of the outermost call
 * @param {Hide} [hide]
 * @returns {State} repeats stay folded behind one representative
 */
export function depthState(graph, depth, hide = USUALLY_HIDDEN, isFolding = true) {
  const index = indexGraph(graph);
  const state = { ...closedState(), hide: { ...hide } };
  for (const call of graph.calls) {
    if (call.parent === null || index.depth[call.id] >= depth) continue;
    if (call.parent !== 0 && !state.open.has(call.parent)) continue;
    if (isFolding && !isRepresentative(index, call.id)) continue;
    state.open.add(call.id);
    const member = index.memberOf.get(call.id);
    if (member !== undefined) state.unfolded.add(member);
  }
  return state;
}

/**
 * @param {Graph} graph
 * @param {Hide} [hide]
 * @returns {State} everything open, repeats unfolded
 */
export function allOpen(graph, hide = USUALLY_HIDDEN) {
  const index = indexGraph(graph);
  return {
    open: new Set(graph.calls.map((call) => call.id)),
    unfolded: new Set(index.memberOf.values()),
    hide: { ...hide },
  };
}

/** @param {State} state @returns {State} */
const copyOf = (state) => ({ open: new Set(state.open), unfolded: new Set(state.unfolded), hide: { ...state.hide } });

/**
 * @param {Graph} graph
 * @param {State} state
 * @param {Pick<Item, "kind"|"id"|"members">} item a closed call is opened; of a repeat the first member is shown and opened
 * @returns {State}
 */
export function openState(graph, state, item) {
  return item.kind === "node" ? state : openCall(graph, state, item.id);
}

/** @type {(graph: Graph, state: State, call: number) => State} */
function openCall(graph, state, call) {
  const next = copyOf(state);
  next.open.add(call);
  const member = indexGraph(graph).memberOf.get(call);
  if (member !== undefined) next.unfolded.add(member);
  return next;
}

/**
 * @param {Graph} _graph
 * @param {State} state
 * @param {Pick<Item, "kind"|"id">} item an open call
 * @returns {State} what was open inside it stays so, for when it is opened again
 */
export function closeState(_graph, state, item) {
  const next = copyOf(state);
  next.open.delete(item.id);
  return next;
}

/**
 * @param {Graph} graph
 * @param {State} state
 * @param {Pick<Item, "members">} item a repeat
 * @param {"one" | "all" | {from: number, to: number}} which members to show one by one; positions in `members`, `to` excluded
 * @returns {State}
 */
export function unfoldState(graph, state, item, which) {
  const range = which === "one" ? { from: 0, to: 1 } : which === "all" ? { from: 0, to: item.members.length } : which;
  const next = copyOf(state);
  for (const id of item.members.slice(range.from, range.to)) next.unfolded.add(id);
  return next;
}

/**
 * @param {Graph} graph
 * @param {State} state
 * @param {number} call any member of a repeat
 * @returns {State} the whole run folded again
 */
export function foldState(graph, state, call) {
  const next = copyOf(state);
  for (const id of indexGraph(graph).repeatOf.get(call)?.members ?? []) next.unfolded.delete(id);
  return next;
}

/**
 * @param {Graph} graph
 * @param {State} state
 * @param {string} name of a node or call
 * @returns {State} in which it can be seen, its filter switched off where it had hidden it
 */
export function revealState(graph, state, name) {
  const index = indexGraph(graph);
  const call = index.callByName.get(name);
  if (call !== undefined) return revealCall(graph, state, call);
  const node = index.nodeByName.get(name);
  if (node === undefined) return state;
  const scope = graph.nodes[node].call ?? 0;
  const next = openCall(graph, revealCall(graph, state, scope), scope);
  const filter = index.filterOf[node];
  if (filter !== null) next.hide[filter] = false;
  if (index.isDead[node] === 1) next.hide.dead = false;
  const run = runOverNode(index, scope, node);
  if (run !== null) next.unfolded.add(run);
  return next;
}

/** @type {(index: GraphIndex, scope: number, node: number) => number | null} the member whose group holds the node */
function runOverNode(index, scope, node) {
  const place = index.flow[scope].indexOf(node);
  if (place < 0) return null;
  for (const run of index.repeats.get(scope) ?? []) {
    const group = Math.floor((place - run.from) / run.period);
    if (group >= 0 && group < run.members.length) return run.members[group];
  }
  return null;
}

/** @type {(graph: Graph, state: State, call: number) => State} all enclosing calls open and unfolded */
function revealCall(graph, state, call) {
  const { memberOf } = indexGraph(graph);
  const next = copyOf(state);
  /** @type {number | null} */
  let at = call;
  while (at !== null) {
    if (at !== call) next.open.add(at);
    const member = memberOf.get(at);
    if (member !== undefined) next.unfolded.add(member);
    at = graph.calls[at].parent;
  }
  return next;
}
