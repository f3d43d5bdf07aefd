/** The sole reader of the JSON document: checks it and renames its snake_case names once. */

import { withLoops } from "./loops.js";

/** @typedef {import("./types.js").Graph} Graph */

/** The version of the document that this code reads. */
export const SCHEMA_VERSION = 1;

const NODE_KINDS = ["input", "parameter", "buffer", "constant", "op", "opaque", "output"];
const LISTS = ["specs", "sources", "calls", "nodes", "edges", "inputs", "outputs"];
const MAX_ERRORS = 20;

/**
 * @param {unknown} document what `JSON.parse` gave
 * @returns {{status: "success", graph: Graph} | {status: "failure", errors: string[]}}
 */
export function decode(document) {
  const raw = /** @type {any} */ (document);
  const problem = unreadable(raw);
  if (problem !== null) return { status: "failure", errors: [problem] };
  const errors = brokenReferences(raw);
  if (errors.length > 0) return { status: "failure", errors };
  return { status: "success", graph: withLoops(toGraph(raw)) };
}

/**
 * @param {any} raw
 * @returns {string | null} why nothing of the document can be read
 */
function unreadable(raw) {
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) return "the document is not an object";
  if (raw.schema_version !== SCHEMA_VERSION) {
    const found = raw.schema_version === undefined ? "no version" : `version ${raw.schema_version}`;
    return `the document has ${found}, this view reads version ${SCHEMA_VERSION}`;
  }
  const missing = LISTS.filter((name) => !Array.isArray(raw[name]));
  if (missing.length > 0) return `the document lacks the list ${missing.join(", ")}`;
  if (raw.calls.length === 0) return "the document has no module call";
  return null;
}

/**
 * @param {any} raw
 * @returns {string[]} references that lead nowhere; at most MAX_ERRORS
 */
function brokenReferences(raw) {
  /** @type {string[]} */
  const errors = [];
  const count = { spec: raw.specs.length, call: raw.calls.length, node: raw.nodes.length, source: raw.sources.length };
  /** @type {(kind: keyof typeof count, id: unknown, list: string, at?: number) => void} */
  const expectId = (kind, id, list, at) => {
    const isKnown = typeof id === "number" && Number.isInteger(id) && id >= 0 && id < count[kind];
    if (isKnown || errors.length >= MAX_ERRORS) return;
    const where = at === undefined ? list : `${list}[${at}]`;
    errors.push(`${where}: unknown ${kind} ${JSON.stringify(id)}`);
  };
  raw.calls.forEach((/** @type {any} */ call, /** @type {number} */ id) => {
    if (id > 0) expectId("call", call.parent, "calls", id);
    if (id > 0 && call.parent >= id) errors.push(`calls[${id}]: its caller must come before it`);
    for (const spec of call.inputs) expectId("spec", spec, "calls", id);
    for (const spec of call.outputs) expectId("spec", spec, "calls", id);
    if (call.source !== null) expectId("source", call.source, "calls", id);
  });
  raw.nodes.forEach((/** @type {any} */ node, /** @type {number} */ id) => {
    if (!NODE_KINDS.includes(node.kind)) errors.push(`nodes[${id}]: unknown kind ${JSON.stringify(node.kind)}`);
    if (node.call !== null) expectId("call", node.call, "nodes", id);
    for (const spec of node.outputs) expectId("spec", spec, "nodes", id);
    if (node.source !== null) expectId("source", node.source, "nodes", id);
  });
  raw.edges.forEach((/** @type {any} */ edge, /** @type {number} */ at) => {
    expectId("node", edge[0], "edges", at);
    expectId("node", edge[1], "edges", at);
    expectId("spec", edge[4], "edges", at);
  });
  for (const id of [...raw.inputs, ...raw.outputs]) expectId("node", id, "inputs, outputs");
  for (const error of failures(raw)) {
    if (error.node !== null) expectId("node", error.node, "error");
    for (const id of error.calls) expectId("call", id, "error");
  }
  return errors.slice(0, MAX_ERRORS);
}

/**
 * @param {any} raw
 * @returns {any[]} all failures, the one that ended the forward first
 */
const failures = (raw) => (raw.errors?.length ? raw.errors : raw.error ? [raw.error] : []);

/**
 * @param {any} raw a checked document
 * @returns {Graph}
 */
function toGraph(raw) {
  const errors = failures(raw).map((error) => ({ suggestions: [], ...error }));
  return {
    title: raw.title,
    generator: raw.generator,
    specs: raw.specs.map((/** @type {any} */ spec) => ({
      shape: spec.shape,
      dtype: spec.dtype,
      device: spec.device,
      requiresGrad: spec.requires_grad,
      sizeBytes: spec.size_bytes,
    })),
    sources: raw.sources.map((/** @type {any} */ source) => ({
      file: source.file,
      line: source.line,
      function: source.function,
      code: source.code,
      firstLine: source.first_line,
    })),
    calls: raw.calls.map((/** @type {any} */ call, /** @type {number} */ id) => ({ id, ...call })),
    nodes: raw.nodes.map((/** @type {any} */ node, /** @type {number} */ id) => ({ id, ...node })),
    edges: raw.edges.map((/** @type {any} */ edge) => ({
      tail: edge[0],
      head: edge[1],
      tailSlot: edge[2],
      slot: edge[3],
      spec: edge[4],
    })),
    inputs: raw.inputs,
    outputs: raw.outputs,
    error: errors[0] ?? null,
    errors,
    report: raw.report ?? "",
    coverage: raw.coverage,
    proof: raw.proof,
  };
}
