/**
 * Finds runs of structurally equal siblings: the blocks of a `Sequential` or `ModuleList`, a module called in a Python
 * loop. Equal means: same module types, operations, wiring and tensor shapes; names don't count. Pure.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./graphindex.js").Repeat} Repeat
 * @typedef {{flow: number[][], depth: number[]}} Tree
 */

/** Longest group that is looked for: a call and the operations between two of them. */
const MAX_PERIOD = 8;
/** A call with fewer operations than this is small: folding two of them would hide more than it clears up. */
const SMALL_CALL = 3;

/**
 * @param {Graph} graph
 * @param {Tree} tree
 * @returns {Map<number, Repeat[]>} by call
 */
export function findRepeats(graph, tree) {
  const codes = structureCodes(graph, tree);
  /** @type {Map<number, Repeat[]>} */
  const found = new Map();
  tree.flow.forEach((children, scope) => {
    const runs = runsOf(graph, codes, children, scope);
    if (runs.length > 0) found.set(scope, runs);
  });
  return found;
}

/** Gives equal strings equal small numbers. @returns {(text: string) => number} */
function interner() {
  /** @type {Map<string, number>} */
  const known = new Map();
  return (text) => {
    const code = known.get(text) ?? known.size;
    known.set(text, code);
    return code;
  };
}

/**
 * @typedef {{ofNode: number[], ofCall: number[], size: number[]}} Codes
 *
 * @param {Graph} graph
 * @param {Tree} tree
 * @returns {Codes} numbers that are equal where the structure is
 */
function structureCodes(graph, tree) {
  const { nodes, calls } = graph;
  const intern = interner();
  const specCode = graph.specs.map((spec) => intern(`spec ${spec.shape} ${spec.dtype}`));
  const ofNode = nodes.map((node) =>
    intern(`node ${node.kind} ${node.op} ${node.status} ${node.outputs.map((spec) => specCode[spec])}`),
  );
  const wiring = wiringByScope(graph, tree, specCode);
  const ofCall = calls.map(() => 0);
  const size = calls.map(() => 0);
  // A call comes before what it calls, so walking backwards meets children first.
  for (let id = calls.length - 1; id >= 0; id -= 1) {
    const { type, detail, status, loop } = calls[id];
    size[id] = tree.flow[id].reduce((sum, child) => sum + (child < 0 ? size[~child] : 1), 0);
    // What a loop does is the same in all rounds, whatever the shapes.
    if (loop !== undefined) {
      ofCall[id] = intern(`loop ${loop}`);
      continue;
    }
    const parts = tree.flow[id].map((child) => (child < 0 ? `c${ofCall[~child]}` : `n${ofNode[child]}`));
    ofCall[id] = intern(`call ${type} ${detail} ${status} [${parts}] ${wiring[id].join(" ")}`);
  }
  return { ofNode, ofCall, size };
}

/**
 * @param {Graph} graph
 * @param {Tree} tree
 * @param {number[]} specCode
 * @returns {string[][]} per call: which of its children feeds which, by position
 */
function wiringByScope(graph, tree, specCode) {
  const { nodes, calls } = graph;
  const nodePlace = nodes.map(() => -1);
  const callPlace = calls.map(() => -1);
  for (const children of tree.flow) {
    children.forEach((child, place) => {
      if (child < 0) callPlace[~child] = place;
      else nodePlace[child] = place;
    });
  }
  /** @type {string[][]} */
  const wiring = calls.map(() => []);
  for (const edge of graph.edges) {
    const headScope = nodes[edge.head].call ?? 0;
    const what = `${edge.slot}:${specCode[edge.spec]}`;
    const isState = nodePlace[edge.tail] < 0;
    let tailScope = nodes[edge.tail].call ?? 0;
    if (isState || tailScope !== headScope)
      wiring[headScope].push(`${isState ? "s" : "x"}>${nodePlace[edge.head]}:${what}`);
    if (isState) continue;
    let tailPlace = nodePlace[edge.tail];
    let headPlace = nodePlace[edge.head];
    let scope = headScope;
    while (tailScope !== scope) {
      if (tree.depth[tailScope] >= tree.depth[scope]) {
        tailPlace = callPlace[tailScope];
        tailScope = calls[tailScope].parent ?? 0;
      } else {
        headPlace = callPlace[scope];
        scope = calls[scope].parent ?? 0;
      }
    }
    wiring[scope].push(`${tailPlace}.${edge.tailSlot}>${headPlace}:${what}`);
  }
  return wiring;
}

/**
 * @param {Graph} graph
 * @param {Codes} codes
 * @param {number[]} children
 * @param {number} scope
 * @returns {Repeat[]}
 */
function runsOf(graph, codes, children, scope) {
  // What repeats is a call and what runs beside it: most calls hold operations alone.
  const calls = children.filter((child) => child < 0).map((child) => codes.ofCall[~child]);
  if (new Set(calls).size === calls.length) return [];
  const sequence = children.map((child) => (child < 0 ? codes.ofCall[~child] : codes.ofNode[child]));
  const matches = matchLengths(sequence);
  /** @type {Repeat[]} */
  const runs = [];
  let from = 0;
  while (from < children.length) {
    const run = bestRun(graph, codes, children, scope, from, matches);
    if (run === null) from += 1;
    else {
      runs.push(run);
      from += run.period * run.members.length;
    }
  }
  return runs;
}

/**
 * @param {number[]} sequence
 * @returns {Uint32Array[]} for each period, from each position: how many items in a row equal the one a period later
 */
function matchLengths(sequence) {
  const n = sequence.length;
  /** @type {Uint32Array[]} */
  const lengths = [new Uint32Array(0)];
  for (let period = 1; period <= Math.min(MAX_PERIOD, Math.floor(n / 2)); period += 1) {
    const row = new Uint32Array(n + 1);
    for (let i = n - period - 1; i >= 0; i -= 1) row[i] = sequence[i] === sequence[i + period] ? row[i + 1] + 1 : 0;
    lengths.push(row);
  }
  return lengths;
}

/** @type {(graph: Graph, codes: Codes, children: number[], scope: number, from: number, matches: Uint32Array[]) => Repeat | null} */
function bestRun(graph, codes, children, scope, from, matches) {
  /** @type {Repeat | null} */
  let best = null;
  for (let period = 1; period < matches.length; period += 1) {
    const groups = Math.floor(matches[period][from] / period) + 1;
    if (groups < 2) continue;
    if (best !== null && groups * period <= best.members.length * best.period) continue;
    const members = membersOf(children, from, period, groups);
    if (members !== null && isWorthFolding(graph, codes, children, from, period, members)) {
      best = { scope, from, period, members };
    }
  }
  return best;
}

/** @type {(children: number[], from: number, period: number, groups: number) => number[] | null} the first call of each group */
function membersOf(children, from, period, groups) {
  const offset = children.slice(from, from + period).findIndex((child) => child < 0);
  if (offset < 0) return null;
  return Array.from({ length: groups }, (_, group) => ~children[from + group * period + offset]);
}

/**
 * Equal neighbours are not yet a repetition: the query, key and value projections of attention look alike and mean
 * different things. Numbered names or the same module again say that a loop ran.
 *
 * @type {(graph: Graph, codes: Codes, children: number[], from: number, period: number, members: number[]) => boolean}
 */
function isWorthFolding(graph, codes, children, from, period, members) {
  if (graph.calls[members[0]].status === "failed") return false;
  const group = children.slice(from, from + period);
  const size = group.reduce((sum, child) => sum + (child < 0 ? codes.size[~child] : 1), 0);
  const isLoop = isNumbered(members.map((id) => graph.calls[id].fqn ?? graph.calls[id].name));
  return isLoop && (members.length > 2 || size >= SMALL_CALL);
}

/** @param {string[]} names @returns {boolean} all the same, but for numbers that stand alone: `h.0`, `h.1`; `Cell`, `Cell_1` */
function isNumbered(names) {
  const pattern = (/** @type {string} */ name) => name.replace(/(^|[._])\d+(?=\.|$)/g, "");
  return names.every((name) => pattern(name) === pattern(names[0]));
}
