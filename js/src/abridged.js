/**
 * Reads what python/torchatlas/abridged.py writes: a graph in few bytes, for the map that a notebook keeps. What it leaves
 * out (code, arguments, numbers) is empty in the graph. Pure.
 *
 * @typedef {import("./types.js").Graph} Graph
 */

const KINDS = /** @type {const} */ (["input", "parameter", "buffer", "constant", "op", "opaque", "output"]);

/**
 * @param {any} raw what `JSON.parse` gave
 * @returns {Graph}
 */
export function readAbridged(raw) {
  const calls = readCalls(rows(raw.calls));
  const nodes = readNodes(rows(raw.nodes), calls);
  const errors = raw.errors.map((/** @type {any[]} */ [type, message, node, open]) => {
    return { type, message, node, calls: open, source: null, explanation: "", suggestions: [] };
  });
  const idsOf = (/** @type {string} */ kind) => nodes.filter((node) => node.kind === kind).map(({ id }) => id);
  return {
    title: raw.title,
    generator: "",
    specs: raw.specs.map((/** @type {any[]} */ [shape, dtype, sizeBytes]) => {
      return { shape, dtype, device: "", requiresGrad: false, sizeBytes };
    }),
    sources: [],
    calls,
    nodes,
    edges: readEdges(rows(raw.edges)),
    inputs: idsOf("input"),
    outputs: idsOf("output"),
    error: errors[0] ?? null,
    errors,
    report: "",
    coverage: { operations: 0, nodes: 0, opaque: 0, outside: 0 },
    proof: { status: "not_run", reason: "" },
  };
}

/** @param {any[][]} columns @returns {any[][]} */
const rows = (columns) => (columns[0] ?? []).map((_value, at) => columns.map((column) => column[at]));

/** A leading dot stands for the name of what something lies in. @type {(name: string, outer: string) => string} */
const whole = (name, outer) => (name.startsWith(".") ? outer + name : name);

/** @param {any[][]} found @returns {Graph["calls"]} */
function readCalls(found) {
  /** @type {Graph["calls"]} */
  const calls = [];
  found.forEach(([inner, fqn, type, back, failed, inputs, outputs, parameters], id) => {
    const parent = back === 0 ? null : id - back;
    const name = whole(inner, calls[parent ?? 0]?.name ?? "");
    calls.push({
      ...{ id, name, fqn: fqn === 0 ? name : fqn, type, parent, status: failed ? "failed" : "ok", inputs, outputs },
      ...{ detail: "", source: null, metrics: parameters > 0 ? { parameters } : {} },
    });
  });
  return calls;
}

/** @type {(found: any[][], calls: Graph["calls"]) => Graph["nodes"]} */
function readNodes(found, calls) {
  let at = 0;
  return found.map(([kind, inner, op, step, failed, outputs], id) => {
    at += step;
    const plain = at > 0 ? `.${op}` : op;
    return {
      ...{ id, name: whole(inner === 0 ? plain : inner, calls[at]?.name ?? ""), kind: KINDS[kind], op },
      ...{ call: at < 0 ? null : at, status: failed ? "failed" : "ok", outputs },
      ...{ arguments: [], source: null, note: null, metrics: {} },
    };
  });
}

/** @param {any[][]} found @returns {Graph["edges"]} */
function readEdges(found) {
  let head = 0;
  return found.map(([step, back, tailSlot, slot, spec]) => {
    head += step;
    return { tail: head - back, head, tailSlot, slot, spec };
  });
}
