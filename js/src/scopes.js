/**
 * Splits a visible graph into scopes, one per open call and one for the top level. A scope holds its children and the
 * tensors between them; a tensor that crosses the border of a scope does so at a port, one per tensor. Pure, linear.
 *
 * Two things keep the width of a picture independent of the length of a model. Many results that one child hands out (the
 * key and value cache of each layer) form a list, a scope of its own without a border. And tensors that many children send
 * to one reader, or to a list, share a cable: they count as one tensor on the way there.
 *
 * @typedef {import("./types.js").VisibleGraph} VisibleGraph
 *
 * @typedef {Object} ScopeEdge one tensor between two ends within a scope
 * @property {number} tail place in `children`, or `~port` of a port in
 * @property {number} head place in `children`, or `~port` of a port out
 * @property {number} tensor number of the tensor or cable, unique in the graph
 * @property {number} link the link that runs from one child to the other here and is labelled here; -1 at ports
 *
 * @typedef {Object} Scope
 * @property {number} item index of the open call; -1 for the top level; for a list that of the scope around it
 * @property {boolean} isList
 * @property {number} parent index of the enclosing scope; -1 for the top level
 * @property {number} place in the children of the enclosing scope
 * @property {number} height 0 if no child is open, else one more than that of the highest scope inside
 * @property {number[]} children indices of items; -1 for a list
 * @property {number[]} inner per child: index of its scope, -1 if it is not open
 * @property {Map<number, number>} ins tensors that come in, and their ports; that of the main line is port 0
 * @property {Map<number, number>} outs tensors that go out, likewise
 * @property {ScopeEdge[]} edges
 *
 * @typedef {{scope: number, edge: number}} Step
 * @typedef {{scopes: Scope[], paths: Step[][]}} Scopes scopes: enclosing before enclosed; paths: per link, from tail to head
 */

/** Results of one child from which on they form a list. */
const LIST_LENGTH = 6;
/** Different children that feed one reader from which on their tensors share a cable. */
const CABLE_TAILS = 6;
/** Tensors from one child to another from which on they share a cable: the steps of a sequence, all the masks of an image. */
const CABLE_TENSORS = 10;

/**
 * @param {VisibleGraph} visible
 * @returns {Scopes}
 */
export function splitScopes(visible) {
  const listOf = findLists(visible);
  const { scopes, scopeOf, placeOf } = scopeTree(visible, listOf);
  const isCable = manyTails(visible);
  const tensorOf = tensorFinder(visible, listOf, isCable, bundles(visible));
  /** @type {number[]} index into specs by tensor; -1 for cables */
  const specs = [];
  /** @type {Map<number, number[]>[]} per scope: indices of its edges by their ends */
  const known = scopes.map(() => new Map());
  const most = visible.items.length + visible.links.length;
  /** @type {(scope: number, tail: number, head: number, tensor: number, link: number) => Step} */
  const step = (scope, tail, head, tensor, link) => {
    const { edges } = scopes[scope];
    const ends = (tail + most) * 2 * most + head + most;
    const parallel = known[scope].get(ends);
    if (parallel === undefined) known[scope].set(ends, [edges.length]);
    else {
      const found = parallel.find((edge) => edges[edge].tensor === tensor);
      if (found !== undefined) return { scope, edge: found };
      parallel.push(edges.length);
    }
    return { scope, edge: edges.push({ tail, head, tensor, link }) - 1 };
  };
  const paths = visible.links.map((link, at) => {
    const tensor = tensorOf(link);
    specs[tensor] ??= listOf[link.head] !== null || isCable[link.head] ? -1 : link.spec;
    /** @type {Step[]} */
    const path = [];
    /** @type {Step[] | null} */
    let into = null;
    let tailScope = scopeOf[link.tail];
    let headScope = scopeOf[link.head];
    let tail = placeOf[link.tail];
    let head = placeOf[link.head];
    // Enclosing scopes come first, so the end in the later scope is the one to leave it.
    while (tailScope !== headScope) {
      if (tailScope > headScope) {
        const scope = scopes[tailScope];
        path.push(step(tailScope, tail, ~portOf(scope.outs, tensor), tensor, -1));
        tail = scope.place;
        tailScope = scope.parent;
      } else {
        const scope = scopes[headScope];
        (into ??= []).push(step(headScope, ~portOf(scope.ins, tensor), head, tensor, -1));
        head = scope.place;
        headScope = scope.parent;
      }
    }
    path.push(step(tailScope, tail, head, tensor, at));
    if (into !== null) path.push(...into.reverse());
    return path;
  });
  sortPorts(visible, scopes, specs);
  return { scopes, paths };
}

/** @param {import("./types.js").Link} link @returns {string} */
export const endsOf = ({ tail, head }) => `${tail}>${head}`;

/**
 * @param {VisibleGraph} visible
 * @returns {Map<string, number>} by the ends of links that share a cable: how many they are
 */
export function bundles({ links, items }) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const fed = new Int32Array(items.length);
  for (const { head } of links) fed[head] += 1;
  // Most graphs have none: they are not to pay for it.
  for (const link of links) {
    if (fed[link.head] >= CABLE_TENSORS) counts.set(endsOf(link), (counts.get(endsOf(link)) ?? 0) + 1);
  }
  for (const [ends, count] of counts) if (count < CABLE_TENSORS) counts.delete(ends);
  return counts;
}

/** @type {(ports: Map<number, number>, tensor: number) => number} numbered as they come */
function portOf(ports, tensor) {
  const found = ports.get(tensor) ?? ports.size;
  ports.set(tensor, found);
  return found;
}

/**
 * @param {VisibleGraph} visible
 * @param {(string | null)[]} listOf
 * @param {boolean[]} isCable per item
 * @param {Map<string, number>} bundled
 * @returns {(link: import("./types.js").Link) => number} number of the tensor or cable that a link is part of
 */
function tensorFinder({ links }, listOf, isCable, bundled) {
  const slots = links.reduce((most, { tailSlot }) => Math.max(most, tailSlot), 0) + 1;
  /** @type {Map<number | string, number>} by node and slot, by head, by both ends, or by list */
  const tensors = new Map();
  return (link) => {
    const ends = bundled.size > 0 ? endsOf(link) : "";
    const single = bundled.has(ends) ? ends : link.tailNode * slots + link.tailSlot;
    const key = listOf[link.head] ?? (isCable[link.head] ? ~link.head : single);
    const tensor = tensors.get(key) ?? tensors.size;
    tensors.set(key, tensor);
    return tensor;
  };
}

/**
 * The main line through a scope is what comes in and goes out alike, from the sibling before to the one after; module calls
 * count before operations. With its ports on one axis a stack of blocks stays a column. Ports are numbered in this order:
 * the main line first, then what belongs together side by side, the same in all blocks of a stack.
 *
 * @param {VisibleGraph} visible
 * @param {Scope[]} scopes get their ports numbered anew
 * @param {number[]} specs by tensor
 */
function sortPorts({ items }, scopes, specs) {
  // With one port there is nothing to sort.
  const costs = scopes.map(({ ins, outs }) => ({
    in: ins.size > 1 ? new Map() : null,
    out: outs.size > 1 ? new Map() : null,
  }));
  /** @type {(map: Map<number, number>, tensor: number, cost: number) => void} */
  const keepLeast = (map, tensor, cost) => void map.set(tensor, Math.min(cost, map.get(tensor) ?? Infinity));
  for (const scope of scopes) {
    const count = scope.children.length;
    const costOf = (/** @type {number} */ place, /** @type {number} */ other) => {
      if (other < 0) return 3 * count;
      const isCall = scope.inner[other] >= 0 || items[scope.children[other]].kind !== "node";
      return Math.abs(other - place) + (isCall ? 0 : 2 * count);
    };
    for (const { tail, head, tensor } of scope.edges) {
      const from = costs[tail < 0 ? -1 : scope.inner[tail]]?.out;
      const to = costs[head < 0 ? -1 : scope.inner[head]]?.in;
      if (from) keepLeast(from, tensor, costOf(tail, head));
      if (to) keepLeast(to, tensor, costOf(head, tail));
    }
  }
  scopes.forEach((scope, at) => {
    const { ins, outs } = scope;
    const { in: inCosts, out: outCosts } = costs[at];
    if (inCosts) scope.ins = sortedPorts(ins, inCosts, alike(outs, specs));
    if (outCosts) scope.outs = sortedPorts(outs, outCosts, alike(ins, specs));
    if (!inCosts && !outCosts) return;
    for (const edge of scope.edges) {
      if (edge.tail < 0) edge.tail = ~(/** @type {number} */ (scope.ins.get(edge.tensor)));
      if (edge.head < 0) edge.head = ~(/** @type {number} */ (scope.outs.get(edge.tensor)));
    }
  });
}

/** @type {(others: Map<number, number>, specs: number[]) => (tensor: number) => boolean} whether one of the others looks the same */
function alike(others, specs) {
  const seen = new Set();
  for (const tensor of others.keys()) seen.add(specs[tensor]);
  return (tensor) => specs[tensor] >= 0 && seen.has(specs[tensor]);
}

/** @type {(ports: Map<number, number>, costs: Map<number, number>, isAlike: (tensor: number) => boolean) => Map<number, number>} */
function sortedPorts(ports, costs, isAlike) {
  const cost = (/** @type {number} */ tensor) => (isAlike(tensor) ? 0 : 1e9) + (costs.get(tensor) ?? 1e8);
  const order = [...ports.keys()].sort((a, b) => cost(a) - cost(b));
  return new Map(order.map((tensor, port) => [tensor, port]));
}

/**
 * @param {VisibleGraph} visible
 * @returns {(string | null)[]} per item: the list that it is part of
 */
function findLists({ items, links }) {
  const fed = items.map(() => 0);
  const read = items.map(() => 0);
  for (const { tail, head } of links) {
    read[tail] += 1;
    fed[head] += 1;
  }
  /** @type {Map<string, number[]>} */
  const lists = new Map();
  for (const { tail, head } of links) {
    if (items[head].kind !== "node" || fed[head] !== 1 || read[head] !== 0) continue;
    const { parent } = items[head];
    /** @type {number | null} */
    let from = tail;
    while (from !== null && items[from].parent !== parent) from = items[from].parent;
    if (from === null) continue;
    const key = `from ${from}`;
    const list = lists.get(key);
    if (list) list.push(head);
    else lists.set(key, [head]);
  }
  /** @type {(string | null)[]} */
  const listOf = items.map(() => null);
  for (const [key, list] of lists) {
    if (list.length >= LIST_LENGTH) for (const item of list) listOf[item] = key;
  }
  return listOf;
}

/** @param {VisibleGraph} visible @returns {boolean[]} per item: whether many others feed it */
function manyTails({ items, links }) {
  const fed = new Int32Array(items.length);
  for (const { head } of links) fed[head] += 1;
  /** @type {Map<number, Set<number>>} */
  const tails = new Map();
  for (const { tail, head } of links) {
    if (fed[head] < CABLE_TAILS) continue;
    const set = tails.get(head) ?? new Set();
    tails.set(head, set.add(tail));
  }
  return items.map((_, item) => (tails.get(item)?.size ?? 0) >= CABLE_TAILS);
}

/**
 * @param {VisibleGraph} visible
 * @param {(string | null)[]} listOf
 * @returns {{scopes: Scope[], scopeOf: number[], placeOf: number[]}} per item: the scope it lies in and its place there
 */
function scopeTree(visible, listOf) {
  /** @type {Scope[]} */
  const scopes = [emptyScope(-1, -1, -1, false)];
  /** @type {Map<number | null, number>} */
  const scopeByItem = new Map([[null, 0]]);
  /** @type {Map<string, number>} */
  const scopeByList = new Map();
  /** @type {(parent: number, item: number, isList: boolean) => number} a new scope inside another */
  const nest = (parent, item, isList) => {
    const outer = scopes[parent];
    outer.children.push(isList ? -1 : item);
    outer.inner.push(scopes.length);
    return scopes.push(emptyScope(isList ? outer.item : item, parent, outer.children.length - 1, isList)) - 1;
  };
  /** @type {number[]} */
  const scopeOf = [];
  /** @type {number[]} */
  const placeOf = [];
  visible.items.forEach((item, at) => {
    let scope = /** @type {number} */ (scopeByItem.get(item.parent));
    const list = listOf[at];
    if (list !== null) {
      const known = scopeByList.get(list);
      scope = known ?? nest(scope, -1, true);
      scopeByList.set(list, scope);
    }
    scopeOf.push(scope);
    placeOf.push(scopes[scope].children.length);
    if (item.isOpen) {
      scopeByItem.set(at, nest(scope, at, false));
      return;
    }
    scopes[scope].children.push(at);
    scopes[scope].inner.push(-1);
  });
  for (let at = scopes.length - 1; at > 0; at -= 1) {
    const outer = scopes[scopes[at].parent];
    outer.height = Math.max(outer.height, scopes[at].height + 1);
  }
  return { scopes, scopeOf, placeOf };
}

/** @type {(item: number, parent: number, place: number, isList: boolean) => Scope} */
const emptyScope = (item, parent, place, isList) => ({
  item,
  isList,
  parent,
  place,
  height: 0,
  children: [],
  inner: [],
  ins: new Map(),
  outs: new Map(),
  edges: [],
});
