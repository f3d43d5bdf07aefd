/**
 * Loops over operations that no module encloses (a state that is scanned step by step, masks that are pasted one by one)
 * get a box for each round, so that they fold like any other repeat: thousands of loose operations could neither be laid
 * out nor read. The boxes are calls of the view alone, which Python doesn't know. Pure.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./types.js").ModuleCall} ModuleCall
 * @typedef {{from: number, period: number, rounds: number}} Loop positions in a stretch of operations
 */

/** Fewer operations than this, or fewer rounds, are clear enough as they are. */
const LEAST_OPERATIONS = 40;
const LEAST_ROUNDS = 4;
/** Operations of a round. */
const MAX_PERIOD = 80;

/**
 * @param {Graph} graph
 * @returns {Graph} the same one where nothing loops
 */
export function withLoops(graph) {
  const names = new Set();
  /** @type {ModuleCall[]} */
  const added = [];
  /** @type {Map<number, number>} node to the round that holds it */
  const roundOf = new Map();
  for (const stretch of stretchesOf(graph)) {
    if (names.size === 0) for (const { name } of [...graph.nodes, ...graph.calls]) names.add(name);
    for (const { from, period, rounds } of loopsIn(graph, stretch)) {
      const loop = graph.calls.length + added.length;
      const base = freeName(graph, stretch[from], names);
      for (let round = 0; round < rounds; round += 1) {
        const id = graph.calls.length + added.length;
        const start = from + round * period;
        for (const node of stretch.slice(start, start + period)) roundOf.set(node, id);
        added.push(roundCall(id, `${base}.${round}`, loop, period, graph.nodes[stretch[from]]));
      }
    }
  }
  if (added.length === 0) return graph;
  const nodes = graph.nodes.map((node) => ({ ...node, call: roundOf.get(node.id) ?? node.call }));
  return { ...graph, nodes, calls: [...graph.calls, ...added] };
}

/** @type {(id: number, name: string, loop: number, period: number, node: GraphNode) => ModuleCall} */
const roundCall = (id, name, loop, period, { call, source }) => ({
  id,
  name,
  fqn: null,
  type: period === 1 ? "1 operation" : `${period} operations`,
  parent: call ?? 0,
  status: "ok",
  inputs: [],
  outputs: [],
  detail: "",
  source,
  metrics: {},
  loop,
});

/** @type {(graph: Graph, node: number, names: Set<string>) => string} for the rounds of a loop that starts at a node */
function freeName(graph, node, names) {
  const { fqn } = graph.calls[graph.nodes[node].call ?? 0];
  const plain = fqn ? `${fqn}.loop` : "loop";
  let name = plain;
  for (let count = 1; names.has(name) || names.has(`${name}.0`); count += 1) name = `${plain}_${count}`;
  names.add(name);
  return name;
}

/**
 * @param {Graph} graph
 * @returns {number[][]} operations of one call that ran one after the other with no call between them; long ones only
 */
function stretchesOf({ nodes, calls }) {
  const counts = new Int32Array(calls.length);
  const isStep = (/** @type {GraphNode} */ { kind, status }) => kind === "op" && status === "ok";
  for (const node of nodes) if (isStep(node)) counts[node.call ?? 0] += 1;
  if (counts.every((count) => count < LEAST_OPERATIONS)) return [];
  /** @type {(number[] | null)[]} per call */
  const open = calls.map(() => null);
  /** @type {number[][]} */
  const all = [];
  for (const node of nodes) {
    if (!isStep(node)) continue;
    const call = node.call ?? 0;
    for (let at = calls[call].parent; at !== null && open[at] !== null; at = calls[at].parent) open[at] = null;
    let stretch = open[call];
    if (stretch === null) all.push((stretch = open[call] = []));
    stretch.push(node.id);
  }
  return all.filter((stretch) => stretch.length >= LEAST_OPERATIONS);
}

/** @type {(graph: Graph, stretch: number[]) => Loop[]} one after the other */
function loopsIn(graph, stretch) {
  const ops = stretch.map((node) => graph.nodes[node].op);
  const matches = matchLengths(ops);
  /** @type {Loop[]} */
  const loops = [];
  let from = 0;
  while (from + LEAST_OPERATIONS <= ops.length) {
    let [best, length] = [0, 0];
    for (let period = 1; period < matches.length; period += 1) {
      const now = matches[period][from] + period;
      if (matches[period][from] > 0 && now > length && now >= LEAST_ROUNDS * period) [best, length] = [period, now];
    }
    if (length < LEAST_OPERATIONS) {
      from += 1;
      continue;
    }
    const start = from + bestStart(graph, stretch.slice(from, from + length), best);
    const rounds = Math.floor((from + length - start) / best);
    if (rounds >= LEAST_ROUNDS) loops.push({ from: start, period: best, rounds });
    from += length;
  }
  return loops;
}

/** @type {(ops: (string | null)[]) => Uint32Array[]} per period and position: how many in a row equal the one a period later */
function matchLengths(ops) {
  /** @type {Uint32Array[]} */
  const lengths = [new Uint32Array(0)];
  for (let period = 1; period <= Math.min(MAX_PERIOD, Math.floor(ops.length / LEAST_ROUNDS)); period += 1) {
    const row = new Uint32Array(ops.length + 1);
    for (let at = ops.length - period - 1; at >= 0; at -= 1)
      row[at] = ops[at] === ops[at + period] ? row[at + 1] + 1 : 0;
    lengths.push(row);
  }
  return lengths;
}

/**
 * Where a round begins can't be told from the operations alone: it is where the fewest tensors run from one to the next.
 *
 * @type {(graph: Graph, run: number[], period: number) => number} 0 to period - 1
 */
function bestStart(graph, run, period) {
  const places = new Map(run.map((node, place) => [node, place]));
  /** Tensors that a cut before this operation of each round would cut through. */
  const cut = new Float64Array(period);
  for (const { tail, head } of graph.edges) {
    const [from, to] = [places.get(tail), places.get(head)];
    if (from === undefined || to === undefined) continue;
    const steps = Math.min(to - from, period);
    for (let step = 1; step <= steps; step += 1) cut[(from + step) % period] += 1;
  }
  return cut.indexOf(Math.min(...cut));
}

/**
 * @param {Graph} graph
 * @param {Iterable<string>} names of nodes and calls
 * @returns {string[]} in the words of Python: in the place of a round, its operations
 */
export function withoutRounds({ calls, nodes }, names) {
  const rounds = new Map(calls.filter(({ loop }) => loop !== undefined).map(({ id, name }) => [name, id]));
  return [...names].flatMap((name) => {
    const round = rounds.get(name);
    return round === undefined ? [name] : nodes.filter(({ call }) => call === round).map((node) => node.name);
  });
}
