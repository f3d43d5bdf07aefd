/**
 * What is written in a box and how large the box is, in px of the scene. Widths come from a table, not from a canvas, so
 * that a graph has the same layout in a browser, a worker, an embedded V8 and Node. Pure.
 */
import { formatCount, formatMetric, formatShape, shortDtype } from "./format.js";

/**
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 * @typedef {import("./types.js").GraphNode} GraphNode
 *
 * @typedef {{title: string, subtitle: string, detail: string, badge: string, width: number, height: number}} Face
 *   of an open call, width is what its title needs and height is that of its title strip
 */

/** Advance widths of the characters 32 to 126 in hundredths of the font size: DejaVu Sans, among the widest in use. */
const SANS =
  "32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 53 100 68 69 70 77 63 58 " +
  "77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 84 50 50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 " +
  "61 63 63 41 52 39 63 59 82 59 59 52 64 34 64 84";
const BOLD =
  "35 46 52 84 70 100 87 31 46 46 52 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 58 100 77 76 73 83 68 68 82 " +
  "84 37 37 77 64 100 84 85 73 85 77 72 68 81 77 110 77 72 73 46 37 46 84 50 50 67 72 59 72 68 44 72 71 34 34 67 34 104 71 " +
  "69 72 72 49 60 48 71 65 92 65 65 58 71 37 71 84";
/** @type {Record<"sans"|"bold", number[]>} */
const WIDTHS = { sans: SANS.split(" ").map(Number), bold: BOLD.split(" ").map(Number) };
const MONO_WIDTH = 0.605;

/** Sizes in px of what marks.js writes. */
const NAME_SIZE = 12.5;
const DETAIL_SIZE = 11;
const OPERATION_SIZE = 12;
const LABEL_SIZE = 10.5;
const HANDLE_WIDTH = 28;
const PLAIN_INDENT = 14;
const END_PADDING = 12;

export const HEADER_HEIGHT = 30;
/** Room for the mark of a failure in a title strip, and around the text beside it. */
const MARK_WIDTH = 22;
const CLEAR = 3;
export const LABEL_HEIGHT = 14;
/** How far the cards behind a repeat stand out below it (marks.js draws them). */
export const STACK_OVERHANG = 8;
const CARD_HEIGHT = 34;
const TALL_CARD_HEIGHT = 48;
const PILL_HEIGHT = 26;
const STATE_HEIGHT = 24;
const OPERATOR_SIZE = 24;

const MAX_NAME = 28;
const MAX_TYPE = 30;
const MAX_DETAIL = 44;
/** What is in a closed module is told as far as it fits in this width in px, or in that of its title. */
const INSIDE_WIDTH = 220;
const MAX_OPERATION = 34;
/** Names of inputs and outputs are paths, the end of which matters. */
const MAX_PATH = 40;

/** @type {Record<string, string>} operations written as a sign in a small circle */
const SIGNS = {
  add: "+",
  add_: "+",
  radd: "+",
  iadd: "+",
  sub: "−",
  sub_: "−",
  subtract: "−",
  isub: "−",
  mul: "×",
  mul_: "×",
  multiply: "×",
  imul: "×",
  div: "÷",
  div_: "÷",
  truediv: "÷",
  divide: "÷",
  true_divide: "÷",
  matmul: "@",
  mm: "@",
  bmm: "@",
};

/** @type {Record<string, string>} operations written as they stand in Python */
const SPELLINGS = {
  getitem: "x[…]",
  setitem: "x[…] =",
  neg: "−x",
  pow: "xⁿ",
  floor_divide: "//",
  floordiv: "//",
  remainder: "%",
  mod: "%",
  eq: "==",
  ne: "!=",
  lt: "<",
  le: "≤",
  gt: ">",
  ge: "≥",
  logical_and: "and",
  logical_or: "or",
  logical_not: "not",
  bitwise_and: "&",
  bitwise_or: "|",
  bitwise_not: "~",
  invert: "~",
  unsqueeze: "unsqueeze",
};

/**
 * @param {string} text
 * @param {number} size of the font in px
 * @param {"sans"|"bold"|"mono"} face
 * @returns {number} px, rather too much than too little
 */
export function textWidth(text, size, face) {
  const known = knownEms[face];
  let ems = known.get(text);
  if (ems === undefined) {
    ems = 0;
    for (const character of text) ems += emWidth(/** @type {number} */ (character.codePointAt(0)), face);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(text, ems);
  }
  return ems * size;
}

/** Width in ems by text: a graph has the same few words in most of its boxes. */
const knownEms = { sans: new Map(), bold: new Map(), mono: new Map() };
const MOST_KNOWN = 20000;

/** @type {(code: number, face: "sans"|"bold"|"mono") => number} */
function emWidth(code, face) {
  if (isWide(code)) return 1.3;
  if (face === "mono") return MONO_WIDTH;
  const width = WIDTHS[face][code - 32];
  if (width !== undefined) return width / 100;
  return code === 0x2026 ? 1 : 0.78;
}

/** @param {number} code @returns {boolean} East Asian characters and pictographs take a full em and more */
const isWide = (code) =>
  (code >= 0x1100 && code <= 0x115f) ||
  (code >= 0x2e80 && code <= 0xa4cf) ||
  (code >= 0xac00 && code <= 0xd7a3) ||
  (code >= 0xf900 && code <= 0xfaff) ||
  (code >= 0xfe30 && code <= 0xfe6f) ||
  (code >= 0xff00 && code <= 0xff60) ||
  code >= 0x1f000;

/**
 * @param {string} text
 * @param {number} most characters kept, the ellipsis included
 * @returns {string} with its middle left out where it is too long: both ends of a name tell it apart
 */
export function ellipsise(text, most) {
  const characters = [...text];
  if (characters.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.6);
  return `${characters.slice(0, head).join("")}…${characters.slice(characters.length - (most - 1 - head)).join("")}`;
}

/**
 * The name of a call without that of its enclosing call: `h.0` in `transformer`, `attn` in `transformer.h.0`.
 *
 * @param {Graph} graph
 * @param {number} id of a call
 * @returns {string}
 */
export function shortCallName(graph, id) {
  const call = graph.calls[id];
  for (let at = call.parent; at !== null; at = graph.calls[at].parent) {
    const prefix = `${graph.calls[at].name.replace(/:\d+$/, "")}.`;
    if (call.name.startsWith(prefix) && call.name.length > prefix.length) return call.name.slice(prefix.length);
  }
  return call.name;
}

/**
 * @param {Graph} graph
 * @param {number} id of a node
 * @returns {string} the name without that of the module it lies in
 */
function shortNodeName(graph, id) {
  const node = graph.nodes[id];
  if (node.kind === "input" || node.kind === "output") return node.name;
  const fqn = node.call === null ? null : graph.calls[node.call].fqn;
  if (fqn && node.name.startsWith(`${fqn}.`)) return node.name.slice(fqn.length + 1);
  return node.name;
}

/** Nodes look the same in every view of their graph. @type {WeakMap<GraphNode, Face>} */
const nodeFaces = new WeakMap();

/**
 * @param {Graph} graph
 * @param {Item} item
 * @returns {Face}
 */
export function faceOf(graph, item) {
  if (item.kind === "node") {
    const node = graph.nodes[item.id];
    const face = nodeFaces.get(node) ?? nodeFace(graph, node);
    nodeFaces.set(node, face);
    return face;
  }
  return item.isOpen ? openFace(graph, item) : cardFace(graph, item);
}

/** @param {string} op @returns {string} the operation as people write it */
export function operationText(op) {
  return SIGNS[op] ?? SPELLINGS[op] ?? op;
}

/** @type {(graph: Graph, node: GraphNode) => Face} */
function nodeFace(graph, node) {
  const plain = { subtitle: "", detail: "", badge: "" };
  if (node.kind === "op" || node.kind === "opaque") {
    const op = node.op ?? node.name;
    const sign = SIGNS[op];
    if (sign !== undefined) return { ...plain, title: sign, width: OPERATOR_SIZE, height: OPERATOR_SIZE };
    const title = ellipsise(operationText(op), MAX_OPERATION);
    // Wider than high, whatever is written: a circle is for signs.
    const width = Math.max(44, Math.ceil(textWidth(title, OPERATION_SIZE, "mono") + 26));
    return { ...plain, title, width, height: PILL_HEIGHT };
  }
  const isTerminal = node.kind === "input" || node.kind === "output";
  const title = ellipsise(shortNodeName(graph, node.id), isTerminal ? MAX_PATH : MAX_NAME);
  if (isTerminal) {
    return { ...plain, title, width: Math.max(48, Math.ceil(textWidth(title, NAME_SIZE, "bold") + 30)), height: 28 };
  }
  return { ...plain, title, width: Math.ceil(textWidth(title, OPERATION_SIZE, "mono") + 28), height: STATE_HEIGHT };
}

/** @type {(title: string, subtitle: string) => number} */
function titleWidth(title, subtitle) {
  const name = textWidth(title, NAME_SIZE, "bold");
  return subtitle === "" ? name : name + textWidth(` ${subtitle}`, NAME_SIZE, "sans");
}

/** @type {(graph: Graph, item: Item) => Face} */
function openFace(graph, item) {
  const call = graph.calls[item.id];
  const title = ellipsise(shortCallName(graph, item.id), MAX_NAME);
  const subtitle = ellipsise(call.type, MAX_TYPE);
  const width = Math.ceil(HANDLE_WIDTH + 2 + titleWidth(title, subtitle));
  const flops = call.metrics.flops > 0 ? formatMetric("flops", call.metrics.flops) : "";
  const detail = [parameterText(call.metrics), flops].filter(Boolean).join(" · ");
  return { title, subtitle, detail, badge: "", width, height: HEADER_HEIGHT };
}

/**
 * What an open call tells at the right of its title strip: all of it, the first part, or nothing, so that no line that comes
 * in runs through the text.
 *
 * @param {string} detail parts with ` · ` between them
 * @param {number} width of the box in px
 * @param {boolean} hasFailed there is a mark of it at the very right
 * @param {number[]} lines x of what crosses the strip, from the left border
 */
export function headerDetail(detail, width, hasFailed, lines) {
  const right = width - END_PADDING - (hasFailed ? MARK_WIDTH : 0);
  const isFree = (/** @type {string} */ text) => {
    const left = right - textWidth(text, DETAIL_SIZE, "sans");
    return lines.every((x) => x < left - CLEAR || x > right + CLEAR);
  };
  return [detail, detail.split(" · ")[0]].find(isFree) ?? "";
}

/** @type {(graph: Graph, item: Item) => Face} */
function cardFace(graph, item) {
  const call = graph.calls[item.id];
  const isRepeat = item.kind === "repeat";
  const title = ellipsise(isRepeat ? repeatTitle(graph, item.members) : shortCallName(graph, item.id), MAX_NAME);
  const subtitle = ellipsise(call.type, MAX_TYPE);
  const badge = isRepeat ? `×${item.members.length}` : "";
  const indent = item.isOpenable ? HANDLE_WIDTH : PLAIN_INDENT;
  const badgeWidth = badge === "" ? 0 : 20 + 7 * badge.length;
  const first = titleWidth(title, subtitle) + badgeWidth;
  const room = Math.max(first, INSIDE_WIDTH);
  const detail = ellipsise(isRepeat ? repeatDetail(graph, item.members) : cardDetail(graph, item.id, room), MAX_DETAIL);
  const second = textWidth(detail, DETAIL_SIZE, "sans");
  const failedWidth = call.status === "failed" ? 20 : 0;
  const width = Math.max(72, Math.ceil(indent + Math.max(first + failedWidth, second) + END_PADDING));
  return { title, subtitle, detail, badge, width, height: detail === "" ? CARD_HEIGHT : TALL_CARD_HEIGHT };
}

/** @type {(metrics: Record<string, number>) => string} */
function parameterText(metrics) {
  const count = metrics.parameters;
  return count > 0 ? `${formatCount(count)} params` : "";
}

/** @type {(graph: Graph, id: number, room: number) => string} second line of a closed module: parameters, and what is in it */
function cardDetail(graph, id, room) {
  const plain = parameterText(graph.calls[id].metrics);
  const inside = typesInside(graph, id);
  const start = plain === "" ? "" : `${plain.replace(/ params$/, "")} · `;
  // The first of many alone says too little.
  for (let kept = inside.length; kept > 0 && (kept > 1 || inside.length === 1); kept -= 1) {
    const text = `${start}${inside.slice(0, kept).join(", ")}${kept < inside.length ? ", …" : ""}`;
    if (textWidth(text, DETAIL_SIZE, "sans") <= room) return text;
  }
  return plain;
}

/** @type {WeakMap<Graph, string[][]>} */
const typesByCall = new WeakMap();

/** @type {(graph: Graph, id: number) => string[]} classes of the modules called in a call, in order: `Conv2d`, `2×BasicBlock` */
function typesInside(graph, id) {
  let types = typesByCall.get(graph);
  if (!types) {
    types = graph.calls.map(() => []);
    for (const { parent, type } of graph.calls) if (parent !== null) types[parent].push(type);
    typesByCall.set(graph, types);
  }
  const runs = /** @type {{type: string, count: number}[]} */ ([]);
  for (const type of types[id]) {
    const last = runs[runs.length - 1];
    if (last?.type === type) last.count += 1;
    else runs.push({ type, count: 1 });
  }
  return runs.map(({ type, count }) => (count === 1 ? type : `${count}×${type}`));
}

/** @type {(graph: Graph, members: number[]) => string} */
function repeatTitle(graph, members) {
  const first = shortCallName(graph, members[0]);
  const last = shortCallName(graph, members[members.length - 1]);
  const base = first.replace(/:\d+$/, "");
  return last.replace(/:\d+$/, "") === base ? base : `${first} … ${last}`;
}

/** @type {(graph: Graph, members: number[]) => string} */
function repeatDetail(graph, members) {
  if (graph.calls[members[0]].loop !== undefined) return `${members.length} rounds of a loop`;
  const fqns = new Set(members.map((id) => graph.calls[id].fqn ?? graph.calls[id].name));
  if (fqns.size === 1) {
    const text = parameterText(graph.calls[members[0]].metrics);
    return text === "" ? `called ${members.length} times` : `${text}, called ${members.length} times`;
  }
  const total = members.reduce((sum, id) => sum + (graph.calls[id].metrics.parameters ?? 0), 0);
  return total > 0
    ? `${formatCount(total)} params in ${members.length} equal blocks`
    : `${members.length} equal blocks`;
}

/**
 * @param {Graph} graph
 * @param {number} spec index into `graph.specs`
 * @param {string} usualDtype the dtype that goes without saying
 * @returns {string} what is written on an edge: `1×128×768`, `1×128 i64`
 */
export function edgeText(graph, spec, usualDtype) {
  const { shape, dtype } = graph.specs[spec];
  const text = formatShape(shape);
  return ellipsise(dtype === usualDtype ? text : `${text} ${shortDtype(dtype)}`, 36);
}

/** @param {string} text @returns {number} px */
export const labelWidth = (text) => Math.ceil(textWidth(text, LABEL_SIZE, "mono")) + 2;
