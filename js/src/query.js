/**
 * The query language of the search box and of `trace.find()`. python/torchatlas/query.py implements the same; both are
 * tested with tests/queries.json.
 *
 * Grammar
 *
 *     query  := term { whitespace term }          all terms must hold
 *     term   := [ "-" ] ( field ":" value | value )        "-" negates
 *     value  := any characters but whitespace and "  |  '"' any characters but " '"'
 *     field  := "op" | "in" | "type" | "dtype" | "shape" | "kind" | "status" | "name"
 *
 * - A word before a colon that is no field belongs to the value (`encoder.layer:2` is a name). A lone "-", a field without
 *   a value and an empty pair of quotes are skipped. Letters are compared without case.
 * - A glob is a value in which `*` stands for any number of characters and `?` for one. No other character is special;
 *   `[`, `]` and `.` are themselves. A glob must match the whole text.
 *
 * What is found: module calls, in the order of their ids, then nodes, in the order of theirs. A query without terms finds
 * nothing.
 *
 * | term       | holds for                                                                                              |
 * | ---------- | ------------------------------------------------------------------------------------------------------ |
 * | `word`     | calls and nodes whose name contains the word, or whose class (calls) or operation (nodes) does; with `*` |
 * |            | or `?`: whose whole name, or whole class or operation, matches                                          |
 * | `name:g`   | whole name matches                                                                                     |
 * | `op:g`     | nodes whose operation matches                                                                          |
 * | `type:g`   | calls whose class matches                                                                              |
 * | `in:g`     | what lies inside (at any depth, not itself) a path that matches, or a dotted end of which does; paths  |
 * |            | are the names of the calls around, the dotted beginnings of those names and of one's own: `in:h.3` is    |
 * |            | inside `transformer.h.3`, not inside `transformer.h.31`; `in:h` is inside the container `transformer.h`  |
 * | `dtype:g`  | one of its outputs has that dtype; short names too: f64 f32 f16 bf16 i64 i32 i16 i8 u8 c64 c128          |
 * | `shape:g`  | one of its outputs has that shape, written `1,128,768`; `x` and `×` may stand for the comma; `*` matches  |
 * |            | commas too, so `*,768` is any shape that ends with 768; a tensor without axes is `scalar`                |
 * | `kind:g`   | nodes of that kind (input, parameter, buffer, constant, op, opaque, output); calls are `module`         |
 * | `status:g` | `ok` or `failed`                                                                                       |
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./types.js").ModuleCall} ModuleCall
 * @typedef {{field: string | null, value: string, isNegated: boolean}} Term
 * @typedef {{isCall: boolean, row: GraphNode | ModuleCall}} Candidate
 */
import { shortDtype } from "./format.js";

export const FIELDS = ["op", "in", "type", "dtype", "shape", "kind", "status", "name"];

/**
 * @param {string} query
 * @returns {Term[]}
 */
export function parseQuery(query) {
  /** @type {Term[]} */
  const terms = [];
  for (const found of query.matchAll(/(-?)(?:([a-z]+):)?(?:"([^"]*)"|([^\s"]+))?/gi)) {
    if (found[0] === "") continue;
    const [, minus, word, quoted, bare] = found;
    const isField = word !== undefined && FIELDS.includes(word.toLowerCase());
    const rest = quoted ?? bare ?? "";
    const value = word === undefined || isField ? rest : `${word}:${rest}`;
    if (value !== "") {
      const field = isField ? word.toLowerCase() : null;
      terms.push({ field, value: value.toLowerCase(), isNegated: minus === "-" });
    }
  }
  return terms;
}

/**
 * @param {string} pattern
 * @returns {(text: string) => boolean}
 */
function globMatcher(pattern) {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", "[^]*")
    .replaceAll("?", "[^]");
  const expression = new RegExp(`^${source}$`, "u");
  return (text) => expression.test(text.toLowerCase());
}

/**
 * @param {Graph} graph
 * @param {Term} term
 * @returns {(candidate: Candidate) => boolean}
 */
function matcherOf(graph, term) {
  const { field, value } = term;
  const matches = globMatcher(field === "shape" ? value.replace(/[x\u00d7]/g, ",") : value);
  const kindOf = (/** @type {Candidate} */ { isCall, row }) =>
    isCall ? "module" : /** @type {GraphNode} */ (row).kind;
  const typeOf = (/** @type {Candidate} */ { isCall, row }) =>
    isCall ? /** @type {ModuleCall} */ (row).type : /** @type {GraphNode} */ (row).op;
  const specsOf = (/** @type {Candidate} */ { row }) => row.outputs.map((index) => graph.specs[index]);
  switch (field) {
    case "op":
      return (candidate) => !candidate.isCall && matches(typeOf(candidate) ?? "");
    case "type":
      return (candidate) => candidate.isCall && matches(typeOf(candidate) ?? "");
    case "name":
      return ({ row }) => matches(row.name);
    case "kind":
      return (candidate) => matches(kindOf(candidate));
    case "status":
      return ({ row }) => matches(row.status);
    case "dtype":
      return (candidate) =>
        specsOf(candidate).some((spec) => spec && (matches(spec.dtype) || matches(shortDtype(spec.dtype))));
    case "shape":
      return (candidate) =>
        specsOf(candidate).some(
          (spec) => spec?.shape && matches(spec.shape.length === 0 ? "scalar" : spec.shape.join(",")),
        );
    case "in":
      return insideMatcher(graph, matches);
    default:
      return freeMatcher(value, matches, typeOf);
  }
}

/** @type {(value: string, matches: (text: string) => boolean, typeOf: (candidate: Candidate) => string | null) => (candidate: Candidate) => boolean} */
function freeMatcher(value, matches, typeOf) {
  const holds = /[*?]/.test(value) ? matches : (/** @type {string} */ text) => text.toLowerCase().includes(value);
  return (candidate) => holds(candidate.row.name) || holds(typeOf(candidate) ?? "");
}

/**
 * @param {Graph} graph
 * @param {(text: string) => boolean} matches
 * @returns {(candidate: Candidate) => boolean}
 */
function insideMatcher(graph, matches) {
  /** @type {Map<string, boolean>} by path: whether it, or a dotted end of it, matches */
  const known = new Map();
  const isMeant = (/** @type {string} */ path) => {
    let answer = known.get(path);
    if (answer === undefined) {
      const parts = path.split(".");
      answer = parts.some((_, start) => matches(parts.slice(start).join(".")));
      known.set(path, answer);
    }
    return answer;
  };
  const hasMeantBeginning = (/** @type {string} */ name) => {
    for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
      if (isMeant(name.slice(0, dot))) return true;
    }
    return false;
  };
  // Callers come before what they call, so one pass settles it for all that is around a call.
  /** @type {boolean[]} */
  const covers = [];
  const isInside = graph.calls.map((call) => {
    const answer = (call.parent !== null && covers[call.parent]) || hasMeantBeginning(call.name);
    covers[call.id] = answer || isMeant(call.name);
    return answer;
  });
  return ({ isCall, row }) => {
    if (isCall) return isInside[row.id];
    const { call } = /** @type {GraphNode} */ (row);
    return (call !== null && covers[call]) || hasMeantBeginning(row.name);
  };
}

/**
 * Names of the module calls and nodes that a query finds.
 *
 * @param {Graph} graph
 * @param {string} query
 * @returns {string[]}
 */
export function findNames(graph, query) {
  const tests = parseQuery(query).map((term) => {
    const matches = matcherOf(graph, term);
    return (/** @type {Candidate} */ candidate) => matches(candidate) !== term.isNegated;
  });
  if (tests.length === 0) return [];
  const candidates = [
    // Rounds of loops are boxes of the view alone.
    ...graph.calls.filter(({ loop }) => loop === undefined).map((row) => ({ isCall: true, row })),
    ...graph.nodes.map((row) => ({ isCall: false, row })),
  ];
  return candidates.filter((candidate) => tests.every((test) => test(candidate))).map(({ row }) => row.name);
}
