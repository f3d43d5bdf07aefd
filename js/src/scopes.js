/**
 * Splits a visible graph into scopes, one per open call and one for the top level. A scope holds its children and the
 * tensors between them; a tensor that crosses the border of a scope does so at a port, one per tensor. Pure, linear.
 *
 * @typedef {import("./types.js").VisibleGraph} VisibleGraph
 *
 * @typedef {Object} ScopeEdge one tensor between two ends within a scope
 * @property {number} tail place in `children`, or `~port` of a port in
 * @property {number} head place in `children`, or `~port` of a port out
 * @property {number} tensor number of the tensor, unique in the graph
 * @property {number} link the link that runs from one child to the other here and is labelled here; -1 at ports
 *
 * @typedef {Object} Scope
 * @property {number} item index of the open call; -1 for the top level
 * @property {number} parent index of the enclosing scope; -1 for the top level
 * @property {number} height 0 if no child is open, else one more than that of the highest scope inside
 * @property {number[]} children indices of items
 * @property {number[]} inner per child: index of its scope, -1 if it is not open
 * @property {Map<number, number>} ins tensors that come in, and their ports
 * @property {Map<number, number>} outs tensors that go out, and their ports
 * @property {ScopeEdge[]} edges
 *
 * @typedef {{scope: number, edge: number}} Step
 * @typedef {{scopes: Scope[], paths: Step[][]}} Scopes scopes: enclosing before enclosed; paths: per link, from tail to head
 */

/**
 * @param {VisibleGraph} visible
 * @returns {Scopes}
 */
export function splitScopes(visible) {
  const { scopes, scopeOf, placeOf } = scopeTree(visible);
  const add = scopes.map(edgeAdder);
  /** @type {Map<string, number>} */
  const tensors = new Map();
  const paths = visible.links.map((link, at) => {
    const key = `${link.tailNode} ${link.tailSlot}`;
    const tensor = tensors.get(key) ?? tensors.size;
    tensors.set(key, tensor);
    /** @type {Step[]} */
    const out = [];
    /** @type {Step[]} */
    const into = [];
    let tail = { scope: scopeOf[link.tail], place: placeOf[link.tail] };
    let head = { scope: scopeOf[link.head], place: placeOf[link.head] };
    const outward = (/** @type {{scope: number}} */ { scope }) => {
      const { item, parent } = scopes[scope];
      return { scope: parent, place: placeOf[item] };
    };
    // Enclosing scopes come first, so the end in the later scope is the one to leave it.
    while (tail.scope !== head.scope) {
      if (tail.scope > head.scope) {
        out.push({ scope: tail.scope, edge: add[tail.scope].out(tail.place, tensor) });
        tail = outward(tail);
      } else {
        into.push({ scope: head.scope, edge: add[head.scope].into(head.place, tensor) });
        head = outward(head);
      }
    }
    const across = { scope: tail.scope, edge: add[tail.scope].across(tail.place, head.place, tensor, at) };
    return [...out, across, ...into.reverse()];
  });
  return { scopes, paths };
}

/**
 * @param {VisibleGraph} visible
 * @returns {{scopes: Scope[], scopeOf: number[], placeOf: number[]}} per item: the scope it lies in and its place there
 */
function scopeTree(visible) {
  const top = emptyScope(-1, -1);
  /** @type {Scope[]} */
  const scopes = [top];
  /** @type {Map<number | null, number>} */
  const scopeByItem = new Map([[null, 0]]);
  /** @type {number[]} */
  const scopeOf = [];
  /** @type {number[]} */
  const placeOf = [];
  visible.items.forEach((item, at) => {
    const parent = /** @type {number} */ (scopeByItem.get(item.parent));
    scopeOf.push(parent);
    placeOf.push(scopes[parent].children.length);
    scopes[parent].children.push(at);
    scopes[parent].inner.push(item.isOpen ? scopes.length : -1);
    if (!item.isOpen) return;
    scopeByItem.set(at, scopes.length);
    scopes.push(emptyScope(at, parent));
  });
  for (let at = scopes.length - 1; at > 0; at -= 1) {
    const outer = scopes[scopes[at].parent];
    outer.height = Math.max(outer.height, scopes[at].height + 1);
  }
  return { scopes, scopeOf, placeOf };
}

/** @type {(item: number, parent: number) => Scope} */
const emptyScope = (item, parent) => ({
  item,
  parent,
  height: 0,
  children: [],
  inner: [],
  ins: new Map(),
  outs: new Map(),
  edges: [],
});

/**
 * @param {Scope} scope gets the edges
 * @returns {{out: (place: number, tensor: number) => number, into: (place: number, tensor: number) => number,
 *   across: (tail: number, head: number, tensor: number, link: number) => number}} each gives the index of the edge
 */
function edgeAdder(scope) {
  /** @type {Map<string, number>} */
  const known = new Map();
  /** @type {(tail: number, head: number, tensor: number, link: number) => number} */
  const add = (tail, head, tensor, link) => {
    const key = `${tail} ${head} ${tensor}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    known.set(key, scope.edges.length);
    return scope.edges.push({ tail, head, tensor, link }) - 1;
  };
  /** @type {(ports: Map<number, number>, tensor: number) => number} */
  const port = (ports, tensor) => {
    const found = ports.get(tensor) ?? ports.size;
    ports.set(tensor, found);
    return found;
  };
  return {
    out: (place, tensor) => add(place, ~port(scope.outs, tensor), tensor, -1),
    into: (place, tensor) => add(~port(scope.ins, tensor), place, tensor, -1),
    across: (tail, head, tensor, link) => add(tail, head, tensor, link),
  };
}
